"""Isolation forests in preference space: what they share, and that of RuzHash; PI-Forest is in `ruzhash_cv.paper`."""
