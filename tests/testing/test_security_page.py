"""docs/security.md names a test for each guarantee; every one of them exists."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "security.md").read_text("utf-8")


def test_every_named_test_exists() -> None:
    sources = {path: path.read_text("utf-8") for path in TESTS.rglob("*.py")}
    modules = {path.stem for path in sources}
    functions = {name for text in sources.values() for name in re.findall(r"def (test_\w+)", text)}
    named = set(re.findall(r"\btest_\w+", PAGE))
    assert len(named) > 30
    assert named - modules - functions == set()


def test_named_tests_are_in_the_named_files() -> None:
    """`test_tls.py::test_minimum_version`, and `::test_other`, which is in the same file."""
    sources: dict[str, str] = {}
    for path in TESTS.rglob("test_*.py"):
        sources[path.name] = sources.get(path.name, "") + path.read_text("utf-8")
    checked, file = 0, ""
    for named, function in re.findall(r"(?:`(?:[\w/]*/)?(test_\w+\.py)|`)(?:::(test_\w+))?", PAGE):
        file = named or file
        if function:
            checked += 1
            assert f"def {function}(" in sources[file], f"{file}::{function}"
    assert checked > 20
