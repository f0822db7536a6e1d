"""A folder, the real tools, the real gateway and a strict provider: what a small piece of work needs from end to end, in one process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pi_durable_tui.clock import SystemClock
from pi_durable_tui.entropy import SeededEntropy
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.records.messages import AssistantMessage, ToolResultMessage
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.storage.sqlite import open_sqlite
from pi_durable_tui.tools.catalog import all_tools
from pi_durable_tui.tools.environment import LocalEnvironment
from tests.support.model_contract import MODELS, gateway_to
from tests.support.model_server import ModelServer, Received, Step, call, finish, text, usage
from tests.support.patience import RUN_S
from tests.support.wire_forms import FormName


@dataclass(frozen=True, slots=True)
class Work:
    """How a piece of work went.

    Attributes:
        results: (tool, text, is an error) of every call, in the order of the calls.
        refused: What the provider refused.
    """

    submission: Submission
    answer: str
    results: tuple[tuple[str, str, bool], ...]
    requests: tuple[Received, ...]
    refused: tuple[str | None, ...]


async def work_on(root: Path, form: FormName, files: Mapping[str, str], prompt: str, script: Sequence[Sequence[Step]]) -> Work:
    """Let the model of `script` work on `files`, which lie in `root / "work"` then as it left them."""
    folder = root / "work"
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    clock = SystemClock()
    environment = LocalEnvironment(str(folder), root / "state", clock)
    async with ModelServer(script, strict=True) as server:
        harness = await Harness.open(
            await open_sqlite(root / "session.sqlite", clock=clock),
            models=gateway_to(server, clock),
            clock=clock,
            entropy=SeededEntropy(1),
            environment=lambda _conversation_id, _agent: environment,
            tools=all_tools(),
        )
        chat = await harness.create_conversation(Agent(model=MODELS[form], thinking="low", approval="all", cwd=str(folder)))
        placed = await chat.submit(prompt)
        await chat.idle()
        settled = await chat.settled(placed.id)
        messages = [stored.entry.message for stored in await chat.entries()]
        await harness.close()
    given = {message.tool_call_id: message for message in messages if isinstance(message, ToolResultMessage)}
    answers = [message for message in messages if isinstance(message, AssistantMessage)]
    ordered = [given[made.id] for answer in answers for made in answer.tool_calls]
    results = tuple((result.tool_name, result.text, result.is_error) for result in ordered)
    return Work(settled, answers[-1].text if answers else "", results, tuple(server.requests), tuple(one.refusal for one in server.refused))


def is_green(folder: Path) -> bool:
    """The folder's own tests, run as a person would."""
    command = [sys.executable, "-m", "unittest", "-q"]
    return subprocess.run(command, cwd=folder, capture_output=True, timeout=RUN_S, check=False).returncode == 0


def calling(*calls: tuple[str, JsonObject | str], said: str = "", first: int = 0, why: str = "tool_calls") -> list[Step]:
    """An answer that calls tools; arguments that are a text go out as they are. Ids are `toolu_<n>`, from `first`."""
    pieces = [
        call(place, f"toolu_{first + place}", name, arguments if isinstance(arguments, str) else json.dumps(arguments))
        for place, (name, arguments) in enumerate(calls)
    ]
    return [*([text(said)] if said else []), *pieces, finish(why), usage(1_000, 50)]


def saying(words: str) -> list[Step]:
    """A whole answer."""
    return [text(words), finish("stop"), usage(1_000, 20)]
