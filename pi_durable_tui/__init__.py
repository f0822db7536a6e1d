"""pidurable: a terminal coding agent whose work cannot be lost. The durable core is in records, storage, session and harness."""

__version__ = "0.1.0"
