"""What every room may use: types of arrays, checks of arguments, optional packages, interrupts."""
