"""What callers bring: keypoints and matches as correspondences, and cameras."""
