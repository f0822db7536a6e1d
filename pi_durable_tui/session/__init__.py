"""One open store: a single line of commits, and everything that was committed through it."""
