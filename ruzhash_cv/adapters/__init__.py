"""What other packages ask of an estimator, a matcher or a detector, one module for each; a module needs its package, and no other."""
