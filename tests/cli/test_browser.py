"""The browser is told by one program with one argument, and by none that the working directory could bring (SA-4, CASE-G4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_durable_tui.cli.screen.browser import browse, opener_of
from pi_durable_tui.errors import EnvironmentFailure


def opener(folder: Path, code: int = 0) -> Path:
    """A program in the place of the desktop's own; what it was given stands in `told`."""
    folder.mkdir(exist_ok=True)
    path = folder / "xdg-open"
    path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$#" "$@" > "{folder}/told"\nexit {code}\n')
    path.chmod(0o755)
    return path


def desktop(folder: Path, **more: str) -> dict[str, str]:
    return {"PATH": f"{folder}:/bin:/usr/bin", "DISPLAY": ":0", **more}


@pytest.mark.rule("SA-4")
def test_the_desktop_is_given_the_address_as_one_argument(tmp_path: Path) -> None:
    opener(tmp_path)
    browse("https://e.x/a?b=$(id)&c=;d", desktop(tmp_path))
    assert (tmp_path / "told").read_text() == "1\nhttps://e.x/a?b=$(id)&c=;d\n"


@pytest.mark.rule("SA-4")
@pytest.mark.parametrize("url", ["file:///etc/passwd", "javascript:alert(1)", "--help", ""])
def test_nothing_but_the_web_is_opened(tmp_path: Path, url: str) -> None:
    opener(tmp_path)
    with pytest.raises(EnvironmentFailure, match="no web address"):
        browse(url, desktop(tmp_path))
    assert not (tmp_path / "told").exists()


@pytest.mark.rule("SA-4")
def test_without_a_screen_or_an_opener_and_after_a_failure_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = opener(tmp_path, code=3)
    for environ in ({"PATH": str(tmp_path)}, {"PATH": "/nowhere", "DISPLAY": ":0"}):
        with pytest.raises(EnvironmentFailure, match="no browser here"):
            browse("https://e.x/", environ)
    with pytest.raises(EnvironmentFailure, match="ended with code 3"):
        browse("https://e.x/", desktop(tmp_path))
    assert opener_of(desktop(tmp_path), "linux") == str(path)
    monkeypatch.chdir(tmp_path)
    assert opener_of({"PATH": ".", "DISPLAY": ":0"}, "linux") is None
    assert opener_of({"PATH": "", "WAYLAND_DISPLAY": "w"}, "linux") is None
    assert opener_of({"PATH": str(tmp_path)}, "darwin") is None
