"""What a new process says about the end of the last one (rule TU-9). PURE."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from pi_durable_tui.harness.opening import Recovery


def seam_text(recovery: Recovery, zone: tzinfo | None) -> str:
    """One line after a kill; "" when nothing was cut off.

    Args:
        recovery: What opening found.
        zone: For the time of the last commit; None: that of the machine.
    """
    if not recovery.was_killed:
        return ""
    at_ms = recovery.last_commit_at_ms
    when = datetime.fromtimestamp(at_ms / 1000, tz=UTC).astimezone(zone).strftime(" %H:%M:%S") if at_ms is not None else ""
    parts = [f"killed{when}", "nothing lost"]
    if recovery.in_doubt:
        parts.append(f"{_count(len(recovery.in_doubt), 'command')} in doubt")
    if recovery.queued:
        parts.append(f"{_count(recovery.queued, 'message')} queued")
    return "; ".join(parts)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
