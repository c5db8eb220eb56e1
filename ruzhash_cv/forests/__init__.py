"""Isolation forests in preference space: RuzHash-iForest and PI-Forest."""
