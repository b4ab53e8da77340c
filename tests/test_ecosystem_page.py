"""The page docs/ecosystem.md and the tests of `make ecosystem` agree."""

from __future__ import annotations

import importlib
from pathlib import Path

from tests.ecosystem.table import PAGE, Row, merge, read, table

OLD = Row("helm", "v1", "install", "passes")
LAST = Row("kopf", "v1", "handlers", "passes")
DOCUMENT = f"# Title\n\n{table([OLD, LAST])}\nThe end.\n"


def declared() -> list[Row]:
    """Rows that the tests declare."""
    rows: list[Row] = []
    for path in sorted(Path(__file__).with_name("ecosystem").glob("test_*.py")):
        module = importlib.import_module(f"tests.ecosystem.{path.stem}")
        for function in vars(module).values():
            marks = getattr(function, "pytestmark", []) if callable(function) else []
            rows += [mark.args[0] for mark in marks if mark.name == "exercises"]
    return rows


def test_new_result_replaces_the_row_of_the_same_exercise() -> None:
    new = Row("helm", "v2", "install", "fails")
    assert read(merge(DOCUMENT, [new])) == [new, LAST]


def test_new_exercise_follows_the_rows_of_its_software() -> None:
    more, other = Row("helm", "v2", "rollback", "passes"), Row("kr8s", "v1", "watch", "passes")
    merged = merge(DOCUMENT, [more, other])
    assert read(merged) == [OLD, more, LAST, other]
    assert merged.startswith("# Title\n\n") and merged.endswith("\n\nThe end.\n")


def test_page_shows_every_exercise_in_its_current_version() -> None:
    shown = {(row.software, row.version, row.exercised) for row in read(PAGE.read_text())}
    assert {(row.software, row.version, row.exercised) for row in declared()} <= shown
