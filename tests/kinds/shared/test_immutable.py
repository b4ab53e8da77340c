"""Immutable fields."""

from __future__ import annotations

from kubist.api.kinds.shared.update import immutable


def test_removed_string_is_shown_as_empty() -> None:
    (error,) = immutable(None, "a", "spec.controller", "string")
    assert str(error) == 'spec.controller: Invalid value: "": field is immutable'


def test_removed_pointer_is_shown_as_null() -> None:
    (error,) = immutable(None, "a", "spec.nodeName")
    assert str(error) == "spec.nodeName: Invalid value: null: field is immutable"
