"""What is stored: immutable values with no behaviour beyond their own shape. No I/O, no clock, no await."""
