"""Hints for misspelled names."""

from __future__ import annotations

from kubist.base.hints import LONGEST, did_you_mean


def test_similar_name_is_suggested() -> None:
    assert did_you_mean("work_load", ["workloads", "nodes"]) == '; did you mean "workloads"?'


def test_long_names_are_not_compared() -> None:
    assert did_you_mean("x" * LONGEST, ["x" * LONGEST]) != ""
    assert did_you_mean("x" * (LONGEST + 1), ["x" * LONGEST]) == ""
    assert did_you_mean("x" * LONGEST, ["x" * (LONGEST + 1)]) == ""
