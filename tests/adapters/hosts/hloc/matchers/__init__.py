"""Matchers, found by the names of modules."""
