"""Makes a recorded session of a chat that is stored: what the person did, what the model said, and the files it began with."""
