"""Files as of an entry: what the agent changed, kept beside the session and outside of the user's git, so that it can be taken back (TU-18)."""
