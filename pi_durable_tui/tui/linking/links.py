"""Links in foreign text: which text is one, and where it really leads (rule SA-4). PURE: opens and fetches nothing.

What counts is what can be read: a link is a web address that stands there in full, never a text with another address behind it. Its
host is told as the network knows it, so that letters of other scripts cannot pass for Latin ones; an address with a name before
its host, or with anything a terminal or a command line could take for something else, is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote, urlsplit

from msgspec import Struct
from rich.text import Text

from pi_durable_tui.tui.draw.marks import contents

MAX_CHARS = 2_000
_ADDRESS = re.compile(r"(?i)\bhttps?://[^\s<>\"'`│┃▏␛␀\\^{}]+")
_ENDS = ".,;:!?*_~"
_PAIRS = {")": "(", "]": "["}
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\]")


class WebLink(Struct, frozen=True):
    """A link. `url` is printable ASCII; `host` with its port, as the network knows it."""

    url: str
    host: str


def addresses(text: str) -> Iterator[tuple[int, int]]:
    """Where web addresses stand in a text: the first character, and the one behind the last. What ends a sentence is no part of one."""
    for found in _ADDRESS.finditer(text):
        end = found.end()
        while end > found.start() and (text[end - 1] in _ENDS or _is_unpaired(text[found.start() : end])):
            end -= 1
        yield found.start(), end


def _is_unpaired(address: str) -> bool:
    opening = _PAIRS.get(address[-1])
    return opening is not None and address.count(opening) < address.count(address[-1])


def web_link(address: str) -> WebLink | None:
    """Where an address leads; None: to nowhere that may be opened."""
    try:
        parts = urlsplit(address)
        name = (parts.hostname or "").rstrip(".")
        host = f"[{name}]" if ":" in name else name.encode("idna").decode("ascii").lower()
        port = f":{parts.port}" if parts.port is not None else ""
    except (ValueError, UnicodeError):
        return None
    if parts.scheme.lower() not in ("http", "https") or "@" in parts.netloc or _HOST.fullmatch(host) is None:
        return None
    rest = "".join(mark + quote(text, safe="/%:@!$&'()*+,;=~?-._[]") for mark, text in (("", parts.path), ("?", parts.query), ("#", parts.fragment)) if text)
    url = f"{parts.scheme.lower()}://{host}{port}{rest}"
    return WebLink(url, host + port) if len(url) <= MAX_CHARS else None


def links_of(texts: Iterable[str]) -> list[WebLink]:
    """The links in texts, each once, where it stood last."""
    found: dict[WebLink, None] = {}
    for text in texts:
        for start, end in addresses(text):
            link = web_link(text[start:end])
            if link is not None:
                found.pop(link, None)
                found[link] = None
    return list(found)


def address_at(lines: Sequence[Text], line: int, cell: int) -> str | None:
    """The web address that stands in a cell of drawn lines, whole, also where it is wrapped; None: none stands there."""
    for text, places in contents(lines):
        for start, end in addresses(text):
            if any(place is not None and place[0] == line and place[1] <= cell < place[2] for place in places[start:end]):
                return text[start:end]
    return None
