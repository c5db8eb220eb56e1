"""The base of matchers."""
