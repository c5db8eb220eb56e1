"""Outlier rejection for keypoint matches by a RuzHash isolation forest in preference space."""
