"""What the model is told beside the conversation, and what the user and a trusted project bring: instructions, skills, templates, extensions, attachments."""
