"""Copies of objects that differ at some paths."""

from __future__ import annotations

from kubist.model.schema.sent_values import ABSENT, parent, replaced


def test_replaced_copies_only_the_containers_that_change() -> None:
    obj = {"a": {"b": [{"c": 1}, {"c": 2}]}, "d": {"e": 1}}
    made = replaced(obj, {("a", "b", 0, "c"): 3, ("a", "b", 0, "x"): [], ("a", "b", 1, "c"): ABSENT})
    assert made == {"a": {"b": [{"c": 3, "x": []}, {}]}, "d": {"e": 1}}
    assert obj == {"a": {"b": [{"c": 1}, {"c": 2}]}, "d": {"e": 1}}
    assert made["d"] is obj["d"]


def test_replaced_without_changes_is_the_object_itself() -> None:
    obj = {"a": 1}
    assert replaced(obj, {}) is obj


def test_parent_of_an_absent_path_is_none() -> None:
    assert parent({"a": [1]}, ("a", 1, "b")) is None
    assert parent({"a": 1}, ("a", "b", "c")) is None
    assert parent({"a": {"b": 1}}, ("a", "b")) == {"b": 1}
