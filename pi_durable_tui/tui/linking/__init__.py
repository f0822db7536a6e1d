"""Links in what was said: which text is one, and opening it after a look at where it leads (rule SA-4)."""
