"""Links: which text is one, where it really leads, and that nothing is opened or fetched before a person says so (SA-4)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.tui.linking.links import WebLink, addresses, links_of, web_link
from pi_durable_tui.tui.safe_text import safe_text
from tests.support.tui_rig import Rig, running
from tests.support.tui_views import answer, result, user, view

LONG = "https://example.org/" + "a-long-path/" * 12 + "end"


@dataclass
class Desk:
    """A machine with a browser that remembers what it was told."""

    opened: list[str] = field(default_factory=list)
    refuse: bool = False

    def browse(self, url: str) -> None:
        if self.refuse:
            raise EnvironmentFailure("There is no browser here.", hint="Copy it.")
        self.opened.append(url)

    def find(self, query: str, *, limit: int) -> list[str]:
        return []

    complete = find

    def branch(self) -> str:
        return ""

    def edit(self, text: str) -> str:
        return text


@pytest.mark.rule("SA-4")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see https://e.x/a, and (http://e.x/b).", ["https://e.x/a", "http://e.x/b"]),
        ("[docs](https://e.x/a_(b))", ["https://e.x/a_(b)"]),
        ("**https://e.x/a**", ["https://e.x/a"]),
        ("HTTPS://E.X", ["HTTPS://E.X"]),
        ("ftp://e.x file:///etc/passwd javascript:alert(1) data:text/html,x ssh://h xhttps://e.x www.e.x", []),
        ("https://e.x/日本 x", ["https://e.x/日本"]),
        ("`https://e.x/a`b", ["https://e.x/a"]),
        ("https://", []),
    ],
)
def test_only_web_addresses_that_stand_there_are_links(text: str, found: list[str]) -> None:
    assert [text[start:end] for start, end in addresses(text)] == found


@pytest.mark.rule("SA-4")
@pytest.mark.parametrize(
    ("address", "link"),
    [
        ("https://Example.org/a?b=c#d", WebLink("https://example.org/a?b=c#d", "example.org")),
        ("http://127.0.0.1:8000/x", WebLink("http://127.0.0.1:8000/x", "127.0.0.1:8000")),
        ("http://[::1]:80/", WebLink("http://[::1]:80/", "[::1]:80")),
        ("https://b\u00fccher.example/ü", WebLink("https://xn--bcher-kva.example/%C3%BC", "xn--bcher-kva.example")),
        ("https://g\u043e\u043egle.com/", WebLink("https://xn--ggle-55da.com/", "xn--ggle-55da.com")),
        ("https://e.x/a%20b", WebLink("https://e.x/a%20b", "e.x")),
        ("https://google.com@evil.example/", None),
        ("https://user:secret@e.x/", None),
        ("https://e.x:99999/", None),
        ("https:///etc/passwd", None),
        ("https://-e.x/", None),
        ("https://e_x\u3000y/", None),
        ("javascript:alert(1)", None),
        ("file:///etc/passwd", None),
        ("https://e.x/" + "a" * 3_000, None),
    ],
)
def test_a_link_is_told_with_the_host_that_the_network_knows(address: str, link: WebLink | None) -> None:
    assert web_link(address) == link
    if link is not None:
        assert link.url.isascii()
        assert link.url.isprintable()


@pytest.mark.rule("SA-4")
def test_each_link_is_listed_once_where_it_stood_last() -> None:
    assert [link.url for link in links_of(["https://a.x/ https://b.x/", "https://a.x/ ftp://c.x"])] == ["https://b.x/", "https://a.x/"]


async def click(rig: Rig, text: str) -> None:
    """Click on the middle of a text of the screen."""
    y, line = next((y, line) for y, line in enumerate(rig.screen_lines()) if text in line)
    await rig.pilot.click(offset=(line.index(text) + len(text) // 2, y))
    await rig.settle()


@pytest.mark.rule("SA-4")
async def test_a_clicked_link_is_opened_after_its_host_was_shown_and_not_before() -> None:
    desk = Desk()
    said = "Read [the bank](https://evil.example/login) or ![picture](https://evil.example/p.png)."
    async with running(view(user(1, "go"), answer(2, said))) as rig:
        rig.app.bridge._opened = replace(rig.opened, desk=desk)
        await click(rig, "the bank")
        assert "Open this link" not in rig.text(), "a text that is no address is no link"
        await click(rig, "evil.example/login")
        assert "Open this link in your browser?" in rig.text()
        assert "Host: evil.example" in rig.text()
        assert desk.opened == []
        await rig.press("escape")
        assert desk.opened == []
        await click(rig, "evil.example/login")
        await rig.press("enter")
        assert "Your browser was told to open evil.example." in rig.text()
        assert desk.opened == ["https://evil.example/login"], "the picture was not fetched, nothing else was opened"


@pytest.mark.rule("SA-4", "TU-4")
async def test_a_wrapped_link_is_whole_and_one_in_output_does_not_unfold_it() -> None:
    async with running(view(user(1, "go"), answer(2, f"See {LONG}"), result(3, "bash", "bash make", "see https://out.example/x", is_error=True))) as rig:
        rig.app.bridge._opened = replace(rig.opened, desk=(desk := Desk()))
        await click(rig, "path/end")
        await rig.press("enter")
        await click(rig, "https://out.example/x")
        assert "Host: out.example" in rig.text()
        await rig.press("c")
        assert "Copied https://out.example/x" in rig.text()
        assert rig.app.clipboard == "https://out.example/x"
        assert desk.opened == [LONG]


@pytest.mark.rule("SA-4")
async def test_links_are_listed_for_keys_and_what_cannot_be_opened_is_said() -> None:
    async with running(view(user(1, "go"), answer(2, "https://one.example/a and https://two.example:8080/b"))) as rig:
        rig.app.bridge._opened = replace(rig.opened, desk=Desk(refuse=True))
        await rig.type("/links")
        await rig.press("enter")
        assert "› two.example:8080" in rig.text()
        await rig.press("up", "enter")
        assert "There is no browser here. Copy it." in rig.text()
    async with running(view(user(1, "nothing"))) as rig:
        await rig.type("/links")
        await rig.press("enter")
        assert "There is no link" in rig.text()


@pytest.mark.rule("SA-4", "SA-1")
async def test_no_link_of_the_terminals_own_is_ever_written() -> None:
    """A terminal would open what stands behind a text: OSC 8 is neither taken over nor made."""
    foreign = "\x1b]8;;https://evil.example/\x07click\x1b]8;;\x07 [a](https://evil.example/)"
    async with running(view(user(1, foreign), answer(2, foreign), result(3, "bash", "bash x", foreign, is_error=True))) as rig:
        strips = rig.app.screen._compositor.render_strips()
        assert [segment for strip in strips for segment in strip if segment.style is not None and segment.style.link] == []
        assert "\x1b" not in safe_text(foreign)
