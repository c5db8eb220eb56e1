"""What every room stands on: checked arguments, kernels, random numbers."""
