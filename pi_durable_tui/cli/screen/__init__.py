"""What the app needs of the machine it runs on: a guard for the terminal, the person's editor."""
