"""Rows as coloured lines: what a row looks like, apart from where it stands. PURE; knows no widget."""
