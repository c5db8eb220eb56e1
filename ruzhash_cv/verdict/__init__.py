"""What each match looks like: p-values and the mask."""
