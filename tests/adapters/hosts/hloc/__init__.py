"""The part of hloc (commit of December 2025) that a matcher touches, written after its interface."""
