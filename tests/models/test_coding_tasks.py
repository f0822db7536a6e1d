"""Three small pieces of ordinary work from end to end, with answers in the styles that models have: calls in parallel, broken JSON, tools that do not
exist, edits that nearly fit, answers that are cut. Real files, real tools, the real gateway over each wire form, a provider that refuses what is not valid.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_durable_tui.records.submission import Done
from tests.support.coding_desk import calling, is_green, saying, work_on
from tests.support.model_server import reason
from tests.support.wire_forms import FormName

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("library"),
    # Said by the library about itself; the program silences them when it loads it, pytest turns them on again for each test.
    pytest.mark.filterwarnings("ignore::UserWarning:pydantic"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.parametrize("form", ["chat", "messages", "responses"]),
]

TESTS = "python3 -m unittest -q 2>&1"

CART = '''\
"""Prices in cents."""


def total(prices, discount_percent=0):
    full = sum(prices)
    if discount_percent:
        return full - full * discount_percent
    return full
'''
CART_TEST = """\
import unittest

from cart import total


class TotalTest(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(total([100, 250]), 350)

    def test_discount(self):
        self.assertEqual(total([1000], discount_percent=10), 900)
"""
WRONG, RIGHT = "        return full - full * discount_percent\n", "        return full - full * discount_percent // 100\n"


@pytest.mark.rule("AG-5", "CASE-C4", "CASE-B9")
async def test_a_failing_test_is_fixed_although_the_first_edit_only_nearly_fits(tmp_path: Path, form: FormName) -> None:
    nearly = {"path": "cart.py", "edits": [{"old": "    return full - full*discount_percent", "new": "    return full - full * discount_percent // 100"}]}
    exactly = {"path": "cart.py", "edits": [{"old": WRONG, "new": RIGHT}]}
    script = [
        [reason("The tests first.", "sig1=="), *calling(("bash", {"command": TESTS}), said="I run the tests.")],
        [reason("A percentage.", "sig2=="), *calling(("read", {"path": "cart.py"}), ("read", {"path": "test_cart.py"}), first=1)],
        calling(("edit", nearly), first=3),
        calling(("edit", exactly), first=4),
        calling(("bash", {"command": TESTS}), first=5),
        saying("Fixed: the discount is a percentage."),
    ]
    work = await work_on(tmp_path, form, {"cart.py": CART, "test_cart.py": CART_TEST}, "fix the failing test", script)

    assert work.refused == ()
    assert isinstance(work.submission.state, Done)
    assert work.answer == "Fixed: the discount is a percentage."
    assert [(tool, is_error) for tool, _, is_error in work.results] == [
        ("bash", True),
        ("read", False),
        ("read", False),
        ("edit", True),
        ("edit", False),
        ("bash", False),
    ]
    assert "FAILED" in work.results[0][1]
    assert WRONG.strip() in work.results[3][1]  # what nearly fits is shown, and was not touched
    assert (tmp_path / "work/cart.py").read_text() == CART.replace(WRONG, RIGHT)
    assert is_green(tmp_path / "work")


STORE = "class Store:\n    def fetch(self, key):\n        return {'a': 1}.get(key)\n"
USE = "from store import Store\n\n\ndef look(key):\n    return Store().fetch(key)\n"
USE_TEST = """\
import unittest

from store import Store
from use import look


class LookTest(unittest.TestCase):
    def test_look(self):
        self.assertEqual(look("a"), Store().load("a"))
"""


@pytest.mark.rule("AG-5", "CASE-B2", "CASE-B7")
async def test_a_name_is_changed_across_files_by_parallel_calls_with_broken_json_and_a_tool_that_does_not_exist(tmp_path: Path, form: FormName) -> None:
    in_store = {"path": "store.py", "edits": [{"old": "def fetch(", "new": "def load("}]}
    in_use = {"path": "use.py", "edits": [{"old": ".fetch(key)", "new": ".load(key)"}]}
    script = [
        calling(("search_and_replace", {"from": "fetch", "to": "load"}), ("grep", {"pattern": "fetch"}), said="I look for it."),
        calling(("read", {"path": "store.py"}), ("read", {"path": "use.py"}), first=2),
        calling(("edit", in_store), ("edit", '{"path": "use.py", "edits": [{"old": ".fetch(key)", "new": '), first=4),
        calling(("edit", in_use), ("grep", {"pattern": "fetch"}), first=6),
        calling(("bash", {"command": TESTS}), first=8),
        saying("Renamed in both files."),
    ]
    work = await work_on(tmp_path, form, {"store.py": STORE, "use.py": USE, "test_use.py": USE_TEST}, "rename fetch to load", script)

    assert work.refused == ()
    assert isinstance(work.submission.state, Done)
    errors = [(tool, is_error) for tool, _, is_error in work.results]
    assert errors[:2] == [("search_and_replace", True), ("grep", False)]
    assert "grep" in work.results[0][1]  # which tools there are
    assert "store.py" in work.results[1][1]
    assert "use.py" in work.results[1][1]
    assert errors[4:6] == [("edit", False), ("edit", True)]
    assert (tmp_path / "work/store.py").read_text() == STORE.replace("fetch", "load")
    assert (tmp_path / "work/use.py").read_text() == USE.replace("fetch", "load")
    assert is_green(tmp_path / "work")


GREET = """\
import argparse


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    options = parser.parse_args(argv)
    greeting = f"Hello {options.name}"
    return greeting


if __name__ == "__main__":
    print(main())
"""
GREET_TEST = """\
import unittest

from greet import main


class GreetTest(unittest.TestCase):
    def test_plain(self):
        self.assertEqual(main(["you"]), "Hello you")

    def test_loud(self):
        self.assertEqual(main(["--loud", "you"]), "HELLO YOU")
"""


@pytest.mark.rule("AG-5", "CASE-B1")
async def test_a_flag_is_added_although_the_first_answer_is_cut_in_the_middle_of_a_file(tmp_path: Path, form: FormName) -> None:
    flag = {"old": '    parser.add_argument("name")\n', "new": '    parser.add_argument("name")\n    parser.add_argument("--loud", action="store_true")\n'}
    use = {"old": "    return greeting\n", "new": "    return greeting.upper() if options.loud else greeting\n"}
    script = [
        calling(("read", {"path": "greet.py"}), ("ls", {})),
        calling(("write", '{"path": "greet.py", "content": "import argparse\\n\\n\\ndef main('), first=2, why="length"),
        calling(("edit", {"path": "greet.py", "edits": [flag, use]}), first=3),
        calling(("bash", {"command": TESTS}), ("bash", {"command": "python3 greet.py --loud you"}), first=4),
        saying("There is a flag --loud now."),
    ]
    work = await work_on(tmp_path, form, {"greet.py": GREET, "test_greet.py": GREET_TEST}, "add a flag --loud", script)

    assert work.refused == ()
    assert isinstance(work.submission.state, Done)
    assert [(tool, is_error) for tool, _, is_error in work.results] == [
        ("read", False),
        ("ls", False),
        ("write", True),
        ("edit", False),
        ("bash", False),
        ("bash", False),
    ]
    assert "limit" in work.results[2][1]  # the model is told to send smaller parts
    assert "HELLO YOU" in work.results[5][1]
    assert (tmp_path / "work/greet.py").read_text() == GREET.replace(flag["old"], flag["new"]).replace(use["old"], use["new"])
    assert is_green(tmp_path / "work")
