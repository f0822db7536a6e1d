"""The pages in docs/ say what is there: links, pictures, modules, the manual, and the program that uses the core as a library."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import layers, manual

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_every_link_of_every_page_leads_somewhere():
    pages = {page: re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", page.read_text(encoding="utf-8")) for page in sorted(DOCS.glob("*.md"))}
    assert [(page.name, link) for page, links in pages.items() for link in links if not link.startswith("https://") and not (DOCS / link).exists()] == []
    assert {page.name for page in pages} - {"README.md"} <= set(pages[DOCS / "README.md"])


def test_the_picture_of_the_layers_is_the_contract():
    text = layers.PAGE.read_text(encoding="utf-8")
    assert layers.with_pictures(text) == text, "run: python -m tests.support.layers"


def test_every_module_that_the_architecture_names_exists():
    named = re.findall(r"`([\w/]+(?:\.py|/))`", layers.PAGE.read_text(encoding="utf-8"))
    assert named
    assert [name for name in named if not (ROOT / "pi_durable_tui" / name).exists()] == []


@pytest.mark.rule("CL-6")
def test_the_manual_page_is_made_from_the_table_of_commands():
    assert manual.PAGE.read_text(encoding="utf-8") == manual.written(), "run: python -m tests.support.manual"
    assert '"docs/pidurable.1" = "share/man/man1/pidurable.1"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("groff") is None, reason="this machine cannot set manual pages")
def test_the_manual_page_is_set_without_a_complaint():
    shown = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-rLL=80n", str(manual.PAGE)], capture_output=True, text=True, check=True)
    assert shown.stderr == ""
    assert "--continue" in re.sub("\x1b\\[[0-9;]*m", "", shown.stdout)


@pytest.mark.rule("OB-3")
def test_the_page_about_the_library_names_every_event():
    source = (ROOT / "pi_durable_tui/harness/observation/events.py").read_text(encoding="utf-8")
    told = set(re.findall(r'_(?:tool_)?event\(\s*\w+,\s*"(\w+)"', source))
    named = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", (DOCS / "library.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(name.strip("` ") for names in named for name in names.split(",")) == sorted(told)


@pytest.mark.slow
@pytest.mark.rule("SU-2", "OB-6")
def test_the_programs_on_the_page_about_the_library_run_and_ask_once_and_look_on(tmp_path: Path):
    asking, looking = re.findall(r"```python\n(.*?)```", (DOCS / "library.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len([line for line in asking.splitlines() if line.strip()]) <= 26
    for program, printed in ((asking, "You said: Do it once.\n"), (asking, "You said: Do it once.\n"), (looking, "2 entries, idle\n")):
        (tmp_path / "program.py").write_text(program, encoding="utf-8")
        ended = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, printed, "")
