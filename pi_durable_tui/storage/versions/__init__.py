"""The versions of what is stored, and the way from one to the next."""
