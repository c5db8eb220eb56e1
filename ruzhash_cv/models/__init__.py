"""Models of two views and of points in the plane; `ruzhash_cv.families` holds the public names."""
