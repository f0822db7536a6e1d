"""The JSONL backend: one folder per store, readable line by line with any tool for JSON."""

from __future__ import annotations

from pi_durable_tui.storage.jsonl.opening import open_jsonl
from pi_durable_tui.storage.jsonl.store import JsonlStorage

__all__ = ["JsonlStorage", "open_jsonl"]
