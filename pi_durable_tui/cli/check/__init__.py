"""Commands that look at the program and the machine themselves: `selftest` and `doctor`."""
