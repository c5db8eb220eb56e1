"""The part of glue-factory (its version of 2025) that a robust estimator touches, written after its interface."""
