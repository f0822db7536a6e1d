"""The commands beside the chat: their options and help texts, and nothing else; what they do is imported when it is done."""
