"""The user's settings as a person sees and changes them: what each means, where its value came from, and the file with its schema."""
