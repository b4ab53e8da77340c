"""Validation of objects against schemas: causes as (field, reason), and the compiled check, which must agree
with them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubist.api.crd.validation.explain import OldValue
from kubist.api.crd.validation.schema import compile_schema
from kubist.model.cel import formats

Props = dict[str, Any]
INVALID, TYPE, REQUIRED = "FieldValueInvalid", "FieldValueTypeInvalid", "FieldValueRequired"


def obj(**properties: Props) -> Props:
    return {"type": "object", "properties": properties}


CASES: list[tuple[Props, Any, list[tuple[str, str]]]] = [
    (obj(a={"type": "string"}), {"a": 1}, [("a", TYPE)]),
    (obj(a={"type": "integer"}), {"a": 1.5}, [("a", TYPE), ("<nil>", INVALID)]),
    (obj(a={"type": "integer"}), {"a": 2.0}, []),
    (obj(a={"type": "integer", "format": "int32"}), {"a": 1 << 40}, [("<nil>", INVALID)]),
    (obj(a={"type": "number"}), {"a": 1}, []),
    (obj(a={"type": "string", "nullable": True}), {"a": None}, []),
    (obj(a={"type": "array", "items": {"type": "string"}}), {"a": [None]}, [("a[0]", TYPE)]),
    (obj(a={"type": "string", "maxLength": 2}), {"a": "éèê"}, [("a", "FieldValueTooLong")]),
    (obj(a={"type": "string", "enum": ["x"]}), {"a": "y"}, [("a", "FieldValueNotSupported")]),
    (obj(a={"type": "integer", "minimum": 1, "exclusiveMinimum": True}), {"a": 1}, [("a", INVALID)]),
    (obj(a={"type": "integer", "multipleOf": 3}), {"a": 7}, [("a", INVALID)]),
    (obj(a={"type": "number", "multipleOf": 0.1}), {"a": 0.3}, []),
    (obj(a={"type": "array", "maxItems": 1}), {"a": [1, 2]}, [("a", "FieldValueTooMany")]),
    (obj(a={"type": "array", "minItems": 1}), {"a": []}, [("a", INVALID)]),
    (obj(a={"type": "string", "format": "ipv4"}), {"a": "1.2.3"}, [("a", TYPE)]),
    (obj(a={"type": "string", "format": "nonsense"}), {"a": "1"}, []),
    ({**obj(a=obj()), "required": ["a", "b"]}, {}, [("a", REQUIRED), ("b", REQUIRED)]),
    (
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"k": 1},
        [("k", TYPE)],
    ),
    ({"type": "object", "additionalProperties": False}, {"k": 1}, [("<nil>", INVALID)]),
    (
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {},
        [("<nil>", INVALID), ("a", REQUIRED)],
    ),
    (
        {"allOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {},
        [("a", REQUIRED), ("b", REQUIRED), ("<nil>", INVALID)],
    ),
    ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"a": 1, "b": 1}, [("<nil>", INVALID)]),
    ({"not": {"required": ["a"]}}, {"a": 1}, [("<nil>", INVALID)]),
    (obj(a={"x-kubernetes-int-or-string": True}), {"a": True}, [("a", TYPE)]),
]


@pytest.mark.parametrize(("props", "value", "causes"), CASES)
def test_causes(props: Props, value: Any, causes: list[tuple[str, str]]) -> None:
    found = compile_schema(props).validate(value)
    assert [(error.field, error.reason) for error in found] == causes


def test_update_ignores_errors_in_unchanged_values() -> None:
    props = obj(a={"type": "string", "maxLength": 1}, b={"type": "string", "maxLength": 1})
    new, old = {"a": "long", "b": "longer"}, {"a": "long", "b": "x"}
    found = compile_schema(props).validate(new, "", OldValue(new, old, props))
    assert [error.field for error in found] == ["b"]


def test_list_map_items_are_matched_by_key() -> None:
    item = {**obj(k={"type": "string"}, v={"type": "string", "maxLength": 1}), "required": ["k"]}
    props = obj(
        l={
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": item,
        }
    )
    old = {"l": [{"k": "a", "v": "long"}]}
    new = {"l": [{"k": "b", "v": "x"}, {"k": "a", "v": "long"}]}
    assert compile_schema(props).validate(new, "", OldValue(new, old, props)) == []
    new["l"][0]["v"] = "also long"
    assert [e.field for e in compile_schema(props).validate(new, "", OldValue(new, old, props))] == ["l[0].v"]


FORMATS = {
    "ipv4": (["10.0.0.1", "010.0.0.1"], ["", "1.2.3", "::1"]),
    "ipv6": (["::1", "fe80::1"], ["1.2.3.4", "::g"]),
    "cidr": (["10.0.0.0/8", "::/0"], ["10.0.0.0", "10.0.0.0/33"]),
    "date": (["2024-02-29"], ["2023-02-29", "2024-1-1"]),
    "datetime": (["2024-01-01T00:00:00Z", "2024-01-01t00:00:00z"], ["2024-01-01", "2024-01-01T24:00:00Z"]),
    "duration": (["1h", "22 ns", "3 days"], ["", "x"]),
    "byte": (["YQ=="], ["YQ", ""]),
    "hostname": (["a.example"], ["a.b", "-a", ""]),
    "uuid4": (["9b2b4f3e-6c1d-4a5b-8c7d-0e1f2a3b4c5d"], ["9b2b4f3e-6c1d-1a5b-8c7d-0e1f2a3b4c5d"]),
    "email": (["a@b.c", "A <a@b>"], ["a", "@b"]),
    "uri": (["https://x/y", "/path"], ["", "x y"]),
    "mac": (["00:11:22:33:44:55"], ["00:11:22"]),
    "isbn13": (["978-0321751041"], ["978-0321751042"]),
}


@pytest.mark.parametrize("name", FORMATS)
def test_formats(name: str) -> None:
    predicate = formats.FORMATS[name]
    good, bad = FORMATS[name]
    assert [predicate(text) for text in good] == [True] * len(good)
    assert [predicate(text) for text in bad] == [False] * len(bad)


LEAVES = st.sampled_from(
    [
        {"type": "string", "maxLength": 2},
        {"type": "string", "enum": ["a", ""]},
        {"type": "string", "pattern": "^a"},
        {"type": "integer", "minimum": 1, "maximum": 5},
        {"type": "number", "multipleOf": 0.5},
        {"type": "boolean", "nullable": True},
        {"x-kubernetes-int-or-string": True},
        {"x-kubernetes-preserve-unknown-fields": True},
        {"type": "string", "format": "ipv4"},
        {"enum": [1, "a", True]},
    ]
)


def grow(inner: st.SearchStrategy[Props]) -> st.SearchStrategy[Props]:
    return st.one_of(
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(
            lambda fields: {"type": "object", "properties": fields, "required": list(fields)[:1]}
        ),
        inner.map(lambda items: {"type": "array", "items": items, "maxItems": 2}),
        inner.map(lambda value: {"type": "object", "additionalProperties": value, "minProperties": 1}),
        st.tuples(st.sampled_from(["anyOf", "oneOf", "allOf"]), st.lists(inner, min_size=1, max_size=2)).map(
            lambda pair: {pair[0]: pair[1]}
        ),
        inner.map(lambda value: {"not": value}),
    )


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 9)
    | st.floats(-2, 2)
    | st.sampled_from(["", "a", "abc", "1.2.3.4"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(props=st.recursive(LEAVES, grow, max_leaves=6), value=VALUES)
def test_compiled_check_agrees_with_explainer(props: Props, value: Any) -> None:
    validator = compile_schema(props)
    assert validator.valid(value) == (not validator._explainer.explain(value))
