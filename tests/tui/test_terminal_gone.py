"""A terminal that is gone keeps nothing waiting (CASE-H4)."""

from __future__ import annotations

import os
import threading
from typing import IO, cast

import pytest
from textual.drivers._writer_thread import MAX_QUEUED_WRITES, WriterThread

from pi_durable_tui.tui.terminal_app import Terminal


@pytest.mark.rule("CL-7", "CASE-H4")
def test_what_is_written_to_a_terminal_that_is_gone_is_dropped_and_the_writer_can_be_ended() -> None:
    master, slave = os.openpty()
    with os.fdopen(slave, "w", encoding="utf-8") as file:
        writer = WriterThread(cast("IO[str]", Terminal(file)))
        writer.start()
        os.close(master)

        def write_and_end() -> None:
            for _ in range(4 * MAX_QUEUED_WRITES):
                writer.write("x" * 1_000)
            writer.stop()

        ending = threading.Thread(target=write_and_end, daemon=True)
        ending.start()
        ending.join(20)
        assert not ending.is_alive()
        with pytest.raises(OSError, match="Input/output error"):
            file.write("x" * 1_000_000)
        os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())  # what is held back goes there when the file is closed
