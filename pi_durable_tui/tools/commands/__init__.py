"""Commands: what a shell is started with, and the ones that run on behind their calls."""
