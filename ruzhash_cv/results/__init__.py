"""What an estimate says: the result, its poses and their uncertainty, focal lengths, reasons and warnings, and how it is printed."""
