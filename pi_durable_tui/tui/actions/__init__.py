"""What commands and keys do, and what is decided about it."""
