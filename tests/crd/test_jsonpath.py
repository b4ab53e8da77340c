"""Printer columns: JSONPath in kubectl's dialect, and the cells of a Table."""

from __future__ import annotations

import gc
import time
from typing import Any

import pytest

from kubist.api.crd.columns import Column, age, cell, columns
from kubist.api.crd.jsonpath import JsonPath, PathError
from kubist.api.tables.custom import table
from kubist.model.meta.times import parse_time

OBJECT: dict[str, Any] = {
    "spec": {
        "n": 3,
        "f": 1.5,
        "b": True,
        "none": None,
        "list": [{"name": "a", "v": 1}, {"name": "b", "v": 2}],
        "map": {"x.y": "dotted"},
    },
    "metadata": {"labels": {"app.kubernetes.io/name": "n"}},
}
PATHS: dict[str, list[Any]] = {
    ".spec.n": [3],
    ".spec.absent.deeper": [],
    ".spec.list[0].name": ["a"],
    ".spec.list[-1].name": ["b"],
    ".spec.list[*].v": [1, 2],
    ".spec.list[0:1].v": [1],
    ".spec.list[?(@.name=='b')].v": [2],
    ".spec.list[?(@.v>1)].name": ["b"],
    ".spec.list[?(@.absent)].name": [],
    ".spec.list[0,1].v": [1, 2],
    ".spec.map['x\\.y']": ["dotted"],
    ".metadata.labels.app\\.kubernetes\\.io/name": ["n"],
    "..name": ["a", "b"],
    ".spec.list[*]['name']": ["a", "b"],
}


@pytest.mark.parametrize("path", PATHS)
def test_path_finds_values(path: str) -> None:
    found = JsonPath(path).find(OBJECT)
    assert found == PATHS[path] if path != "..name" else sorted(found) == PATHS[path]


@pytest.mark.parametrize("path", [".a[", ".a[x]", ".a[?(@.b=='c']", ".spec.....x"])
def test_invalid_path_raises(path: str) -> None:
    with pytest.raises(PathError):
        JsonPath(path)


CELLS: list[tuple[str, str, Any]] = [
    ("integer", ".spec.n", 3),
    ("integer", ".spec.f", 1),
    ("integer", ".spec.b", None),
    ("number", ".spec.f", 1.5),
    ("boolean", ".spec.b", True),
    ("boolean", ".spec.n", None),
    ("string", ".spec.n", "3"),
    ("string", ".spec.b", "true"),
    ("string", ".spec.none", "<no value>"),
    ("string", ".spec.absent", None),
    ("string", ".spec.list[0]", '{"name":"a","v":1}'),
    ("string", ".spec.n[0]", None),
    ("date", ".spec.n", None),
]


@pytest.mark.parametrize(("kind", "path", "shown"), CELLS)
def test_cells(kind: str, path: str, shown: Any) -> None:
    assert cell(Column("x", kind, "", "", 0, JsonPath(path)), OBJECT) == shown


AGES = {
    "2024-01-01T00:00:00Z": "0s",
    "2024-01-01T01:00:00Z": "<invalid>",
    "2023-12-31T23:59:30Z": "30s",
    "2023-12-31T23:55:30Z": "4m30s",
    "2023-12-31T21:30:00Z": "150m",
    "2023-12-31T17:30:00Z": "6h30m",
    "2023-12-28T12:00:00Z": "3d12h",
    "2023-01-01T00:00:00Z": "365d",
    "2020-01-01T00:00:00Z": "4y1d",
    "1990-01-01T00:00:00Z": "34y",
    "1700-01-01T00:00:00Z": "292y",
    "0001-01-01T00:00:00Z": "<unknown>",
    "": "<unknown>",
    "null": "<unknown>",
    "2024-01-01": "<invalid>",
    "yesterday": "<invalid>",
}


@pytest.mark.parametrize("when", AGES)
def test_ages(when: str) -> None:
    assert age(when, parse_time("2024-01-01T00:00:00Z")) == AGES[when]


def test_date_column_past_the_end_of_a_list_is_null() -> None:
    version = {"additionalPrinterColumns": [{"name": "T", "type": "date", "jsonPath": ".times[0]"}]}
    shown = table(columns(version))
    assert shown.cells({"metadata": {"name": "a"}, "times": []}) == ["a", None]


@pytest.mark.parametrize(
    "path", [".a" + "[0,0]" * 200, "..a" * 100, ".a" + "[*,*]" * 100, ".a[?(@" + "[0,0]" * 100 + ")]"]
)
def test_path_that_multiplies_values_ends_soon(path: str) -> None:
    """Without a limit, most of these would never end."""
    value: Any = [[]]
    for _ in range(100):
        value = [value]
    nested: Any = {"a": value}
    for _ in range(100):
        nested = {"a": nested}
    for obj in ({"a": value}, nested):
        try:
            JsonPath(path).find(obj)
        except PathError:
            continue


def test_very_long_path_is_read_in_linear_time() -> None:
    def seconds(count: int) -> float:
        started = time.process_time()
        JsonPath(".a" * count)
        return time.process_time() - started

    gc.disable()  # A collection may cost more than all of this.
    try:
        pairs = [(seconds(10_000), seconds(80_000)) for _ in range(5)]
    finally:
        gc.enable()
    assert min(large / small for small, large in pairs) < 32, pairs  # 8; 64 if quadratic
