"""Which key does what: how keys are spelled, and what a person's `keybindings.json` makes of the table."""
