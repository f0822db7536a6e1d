"""Durable tasks: rules that decide (PURE) and a scheduler that carries out what they say."""
