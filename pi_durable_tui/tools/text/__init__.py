"""PURE. Texts as tools need them: file contents and back, exact matching, differences, limits, terminal output as plain text."""
