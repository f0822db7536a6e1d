"""The command line: what a person types, where things are on disk, and the one place that puts all parts together."""
