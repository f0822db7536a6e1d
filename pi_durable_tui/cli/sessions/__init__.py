"""`pidurable sessions`: the chats of a directory and the files they are in."""
