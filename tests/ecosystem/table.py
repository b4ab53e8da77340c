"""Table of software, versions and results: printed after a run, and kept in docs/ecosystem.md."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/ecosystem.md"
HEAD = "| software | version | exercised | result |\n|---|---|---|---|\n"


@dataclass(frozen=True)
class Row:
    software: str
    version: str
    exercised: str
    result: str = ""

    def __str__(self) -> str:
        return f"| {self.software} | {self.version} | {self.exercised} | {self.result} |\n"


def exercises(software: str, version: str, exercised: str) -> pytest.MarkDecorator:
    """Mark of a test: its row in the table."""
    return pytest.mark.exercises(Row(software, version, exercised))


def table(rows: Iterable[Row]) -> str:
    return HEAD + "".join(map(str, rows))


def read(page: str) -> list[Row]:
    """Rows of the table in a page."""
    _, found, after = page.partition(HEAD)
    assert found, "the page has no table"
    body = after.partition("\n\n")[0]
    return [Row(*(cell.strip() for cell in line.strip("|").split("|"))) for line in body.splitlines()]


def merge(page: str, rows: Iterable[Row]) -> str:
    """Page with new results. A row is replaced by the row of the same software and exercise, or added
    after the last row of its software."""
    before, _, after = page.partition(HEAD)
    _, blank, rest = after.partition("\n\n")
    held = read(page)
    for row in rows:
        keys = [(old.software, old.exercised) for old in held]
        names = [old.software for old in held]
        if (row.software, row.exercised) in keys:
            held[keys.index((row.software, row.exercised))] = row
        elif row.software in names:
            held.insert(len(names) - names[::-1].index(row.software), row)
        else:
            held.append(row)
    return before + table(held).rstrip("\n") + (blank + rest if blank else "\n")
