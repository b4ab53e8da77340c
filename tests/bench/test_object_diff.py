"""Readable difference of two objects."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.testbench.recording.object_diff import LONGEST, diff_lines


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (None, None, []),
        ({"a": 1}, {"a": 1}, []),
        ({"spec": {"replicas": 1}}, {"spec": {"replicas": 3}}, ["~ spec.replicas: 1 -> 3"]),
        ({}, {"spec": {"a": 1, "b": True}}, ["+ spec.a: 1", "+ spec.b: true"]),
        ({"spec": {"a": [1]}}, {}, ["- spec.a[0]: 1"]),
        (None, {"kind": "X", "metadata": {"name": "a"}}, ["+ kind: X", "+ metadata.name: a"]),
        ({"data": {"a/b": "1"}}, None, ["- data[a/b]: 1"]),
        ({"a": {}}, {"a": {"b": 1}}, ["+ a.b: 1"]),
        ({"a": {"b": 1}}, {"a": 5}, ['~ a: {"b":1} -> 5']),
        ({"a": None}, {"a": ""}, ['~ a: null -> ""']),
        ({"a": "x"}, {"a": "two\nlines"}, ['~ a: x -> "two\\nlines"']),
        (
            {"metadata": {"resourceVersion": "1", "managedFields": [], "generation": 1}},
            {"metadata": {"resourceVersion": "2", "managedFields": [{}], "generation": 2}},
            ["~ metadata.generation: 1 -> 2"],
        ),
        (
            {"c": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]},
            {"c": [{"name": "b", "image": "2"}, {"name": "new", "image": "1"}]},
            [
                "- c[a].name: a",
                "- c[a].image: 1",
                "~ c[b].image: 1 -> 2",
                "+ c[new].name: new",
                "+ c[new].image: 1",
            ],
        ),
        (
            {"conditions": [{"type": "Ready", "status": "False"}]},
            {"conditions": [{"type": "Ready", "status": "True"}]},
            ["~ conditions[Ready].status: False -> True"],
        ),
        ({"l": ["a", "b"]}, {"l": ["a", "c", "d"]}, ["~ l[1]: b -> c", "+ l[2]: d"]),
        (
            {"l": [{"name": "a"}, {"name": "a", "x": 1}]},
            {"l": [{"name": "a"}, {"name": "a", "x": 2}]},
            ["~ l[1].x: 1 -> 2"],
        ),
    ],
)
def test_lines(before: Any, after: Any, lines: list[str]) -> None:
    assert diff_lines(before, after) == lines


def test_long_values_are_cut() -> None:
    [line] = diff_lines({}, {"a": "x" * 5000})
    assert len(line) < LONGEST + 40 and line.endswith("… (5000 characters)")
