"""What the working directory brings to a chat, put together with the command line and the app."""
