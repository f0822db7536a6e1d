"""`pidurable export`: a chat as one file that needs nothing else to be read."""
