"""JSON merge patch, and the patch between two objects."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubist.model.patch import merge
from kubist.model.patch.errors import MalformedPatch
from kubist.model.patch.values import equal

from .tables import table

_scalars = st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0]) | st.sampled_from(["", "a", "b"])
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=8,
)
_objects = st.dictionaries(st.sampled_from("abcd"), _values)


@pytest.mark.parametrize("case", table("merge"))
def test_merge(case: dict[str, Any]) -> None:
    before = copy.deepcopy((case["object"], case["patch"]))
    assert merge.apply(case["object"], case["patch"]) == case["after"]
    assert (case["object"], case["patch"]) == before


@given(_objects, _objects)
def test_merge_patch_of_a_diff_gives_the_target(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert equal(merge.apply(old, merge.diff(old, new)), new)


@given(_objects)
def test_diff_of_an_object_with_itself_is_empty(value: dict[str, Any]) -> None:
    assert merge.diff(value, copy.deepcopy(value)) == {}


@pytest.mark.parametrize(
    ("document", "checked", "message"),
    [
        (
            [1],
            True,
            "error decoding patch: json: cannot unmarshal array into Go value of type "
            "map[string]interface {}",
        ),
        ("text", False, "Invalid JSON Patch"),
        (None, True, "Invalid JSON Patch"),
    ],
)
def test_merge_patch_must_be_an_object(document: Any, checked: bool, message: str) -> None:
    with pytest.raises(MalformedPatch) as refused:
        merge.check(document, checked=checked)
    assert refused.value.message == message
