"""The tools that look for something in a tree of files: grep, find and ls (rules AG-2, SA-10)."""
