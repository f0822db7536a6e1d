"""The terminal app: draws committed state, hands in what a person types. Decides nothing about the work itself."""
