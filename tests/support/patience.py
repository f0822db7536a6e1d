"""How long a test waits for what must come.

It only ends the wait of a test that fails anyway, so it is long: a machine with other work on it must not make one fail. What a test starts and
expects to be ended by others sleeps longer than that.
"""

from __future__ import annotations

PATIENCE_S = 60.0
"""For one thing on the screen, in a file, or among the processes."""

RUN_S = 180.0
"""For a whole run of a program."""

UNHURRIED_S = 60.0
"""A gap between keys that no machine is too slow for."""
