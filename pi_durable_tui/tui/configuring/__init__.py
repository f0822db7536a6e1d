"""What a person chooses for good: settings and the model."""
