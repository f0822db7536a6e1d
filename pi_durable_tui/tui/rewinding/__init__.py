"""Going back to before a message: the chat, the files, or both (rule TU-18)."""
