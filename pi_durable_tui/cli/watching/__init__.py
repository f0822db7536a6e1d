"""`pidurable watch`: a second terminal that follows a chat another process is running (rule OB-6)."""
