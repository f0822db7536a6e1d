"""Where commits go. The contract is the docstring of `storage.port`; every backend passes the same conformance suite (ST-17)."""
