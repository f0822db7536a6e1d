"""Proves that the wall holds here, by trying to get through it (rule SA-15): nothing is claimed of a sandbox that was not tried.

The probe is a shell script that runs inside and says what it could do; what it must be able to do counts as much as what it must not.
Judging is PURE; `prove` runs it through the door for processes.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence

from pi_durable_tui.tools.sandbox.bubblewrap import Walled

PROBE = """
exec 2>/dev/null
work=$1 outside=$2 processes=$3 network=$4 file=.pidurable-probe
try() { if eval "$2"; then echo "$1 yes"; else echo "$1 no"; fi; }
try write_work ': > "$work/$file" && rm -f "$work/$file"'
try write_tmp ': > "/tmp/$file" && rm -f "/tmp/$file"'
try write_outside ': > "$outside/$file" && rm -f "$outside/$file"'
try remount 'mount -o remount,rw /'
try processes '[ "$(readlink /proc/self/ns/pid)" = "$processes" ]'
try network '[ "$(readlink /proc/self/ns/net)" = "$network" ]'
try other_devices '(for each in /dev/sd* /dev/nvme* /dev/mem; do [ -e "$each" ] && exit 0; done; exit 1)'
"""

MUST: Mapping[str, str] = {
    "write_work": "the work tree cannot be written",
    "write_tmp": "the folder for temporary files cannot be written",
}
"""What a command must be able to do -> how a person is told when it is not."""

MUST_NOT: Mapping[str, str] = {
    "write_outside": "files outside of the work tree can be written",
    "remount": "the file system can be made writable again",
    "processes": "processes outside can be seen and signalled",
    "other_devices": "disks and memory can be reached as devices",
    "network": "the network can be reached",
}
"""What it must not -> likewise. The network counts in the mode `full` only."""


def judge(output: str, mode: Walled) -> tuple[str, ...]:
    """What is wrong with a sandbox whose probe printed `output`, in words for people; () when it holds. PURE."""
    lines = [line.split() for line in output.splitlines()]
    said = {words[0]: words[1] for words in lines if len(words) == 2}
    if not said:
        return ("it could not be started",)
    stopped = {name: wrong for name, wrong in MUST_NOT.items() if name != "network" or mode == "full"}
    return (
        *(wrong for name, wrong in MUST.items() if said.get(name) != "yes"),
        *(wrong for name, wrong in stopped.items() if said.get(name) != "no"),
    )


async def prove(run: Callable[[Sequence[str]], Awaitable[str]], mode: Walled, *, root: str, outside: str) -> tuple[str, ...]:
    """Run the probe; what is wrong, in words for people; () when the wall holds.

    Args:
        run: (arguments of bash) -> what it printed inside of the wall; "" when it could not be started.
        root: The work tree.
        outside: A folder outside of it that this program may write.
    """
    return judge(await run(["-c", PROBE, "probe", root, outside, *map(_namespace, ("pid", "net"))]), mode)


def _namespace(kind: str) -> str:
    """The name of a namespace of this process, which must not be the command's; "" where there are none."""
    try:
        return os.readlink(f"/proc/self/ns/{kind}")  # noqa: PTH115 - it is no path
    except OSError:
        return ""
