"""Path elements, field sets and their FieldsV1 form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubist.model.patch.apply import fieldsv1, paths, sets
from kubist.model.patch.apply.sets import Set

_elements = st.sampled_from(["f:a", "f:b", 'k:{"n":1}', 'k:{"n":"x"}', 'v:"x"', "v:2", "i:0"])
_paths = st.lists(st.lists(_elements, min_size=1, max_size=3).map(tuple), max_size=6)


def members(fields: Set) -> set[tuple[str, ...]]:
    return set(sets.paths(fields))


def assert_well_formed(node: Set, root: bool = True) -> None:
    """Checks that a set is sorted everywhere and that every node has a member."""
    assert list(node) == sorted(node, key=paths.order)
    assert root or set(node) != {"."}
    for element, inner in node.items():
        if element != ".":
            assert_well_formed(inner, root=False)


@given(_paths, _paths)
def test_set_operations_equal_operations_on_members(left: list[Any], right: list[Any]) -> None:
    a, b = sets.of_paths(*left), sets.of_paths(*right)
    assert members(a) == set(left)
    for made, expected in (
        (sets.union(a, b), set(left) | set(right)),
        (sets.intersection(a, b), set(left) & set(right)),
        (sets.difference(a, b), set(left) - set(right)),
        (
            sets.recursive_difference(a, b),
            {path for path in left if not any(path[:n] in right for n in range(1, len(path) + 1))},
        ),
    ):
        assert members(made) == expected
        assert_well_formed(made)
    assert all(sets.has(a, path) == (path in left) for path in right)
    assert (members(a), members(b)) == (set(left), set(right)), "sets are never written to"


@given(_paths)
def test_fieldsv1_round_trip(of: list[Any]) -> None:
    fields = sets.of_paths(*of)
    assert json.dumps(fieldsv1.parse(json.loads(json.dumps(fields)))) == json.dumps(fields)


def test_elements_sort_by_kind_and_content() -> None:
    ordered = [
        ".",
        "f:B",
        "f:a",
        'k:{"port":8}',
        'k:{"port":8,"protocol":"TCP"}',
        'k:{"port":80}',
        'k:{"port":"8"}',
        "v:1",
        "v:1.5",
        "v:2",
        'v:"1"',
        "v:false",
        "v:true",
        "v:null",
        "i:2",
        "i:10",
    ]
    assert list(sets.ordered({element: {} for element in reversed(ordered)})) == ordered


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (["f:spec", "f:replicas"], ".spec.replicas"),
        (["f:ports", 'k:{"port":80,"protocol":"TCP"}'], '.ports[port=80,protocol="TCP"]'),
        (["f:finalizers", 'v:"a\\"b"'], '.finalizers[="a\\"b"]'),
        (["f:x", "v:true", "i:3"], ".x[=true][3]"),
    ],
)
def test_paths_are_formatted_for_messages(path: list[str], shown: str) -> None:
    assert paths.format_path(path) == shown


def test_markup_is_escaped_in_elements() -> None:
    assert paths.value("a<b>&c") == 'v:"a\\u003cb\\u003e\\u0026c"'
    assert paths.canonical('v:"a<b"') == 'v:"a\\u003cb"'


def test_path_elements_from_clients_are_canonicalized() -> None:
    sent = {"f:b": {'k:{ "z": 1, "a": "x" }': {"f:c": None, ".": {}}}, "f:a": {}, "x:future": {"f:d": {}}}
    assert json.dumps(fieldsv1.parse(sent)) == json.dumps(
        {"f:a": {}, "f:b": {'k:{"a":"x","z":1}': {".": {}, "f:c": {}}}}
    )


@pytest.mark.parametrize(
    "bad", [{"f": {}}, {"ff": {}}, {"k:[1]": {}}, {"v:{": {}}, {"i:x": {}}, {"f:a": 1}, []]
)
def test_invalid_field_sets_are_rejected(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        fieldsv1.parse(bad)
