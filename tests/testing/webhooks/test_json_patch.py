"""JSON patches that the framework computes: they turn the old object into the new one."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubist.model.patch import jsonpatch
from kubist.testing.webhooks.admission import diff


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
        ({"a": 0}, {"a": False}, [{"op": "replace", "path": "/a", "value": False}]),
        ({}, {"x/y~z": 1}, [{"op": "add", "path": "/x~1y~0z", "value": 1}]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, [{"op": "remove", "path": "/a/c"}]),
        ({"a": None}, {}, [{"op": "remove", "path": "/a"}]),
        ([1, 2, 3], [1, 3], [{"op": "remove", "path": "/1"}]),
        ([1, 3], [1, 2, 3], [{"op": "add", "path": "/1", "value": 2}]),
        ([1, 2], [1, 2, 3], [{"op": "add", "path": "/2", "value": 3}]),
        ([{"n": 1}, {"n": 2}], [{"n": 1}, {"n": 5}], [{"op": "replace", "path": "/1/n", "value": 5}]),
        ([1, 2, 3], [], [{"op": "remove", "path": f"/{index}"} for index in (2, 1, 0)]),
        ({"a": [1]}, {"a": {"b": 1}}, [{"op": "replace", "path": "/a", "value": {"b": 1}}]),
    ],
)
def test_difference(old: Any, new: Any, expected: list[Any]) -> None:
    assert list(diff(old, new)) == expected


values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab/~", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("ab/~", max_size=2), inner, max_size=3)
    ),
    max_leaves=12,
)
objects = st.dictionaries(st.text("ab/~", max_size=2), values, max_size=4)


@given(objects, objects)
def test_patch_gives_the_new_object(old: dict[str, Any], new: dict[str, Any]) -> None:
    patched = jsonpatch.apply(old, jsonpatch.operations(list(diff(old, new))))
    assert orjson.dumps(patched, option=orjson.OPT_SORT_KEYS) == orjson.dumps(
        new, option=orjson.OPT_SORT_KEYS
    )
