"""Writes the schema of the settings file that the package ships: `python -m tests.support.schema`."""

from __future__ import annotations

import json

from pi_durable_tui.cli.configuration.schema import FILE, settings_schema


def written() -> str:
    """The file as it must be."""
    return json.dumps(settings_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
