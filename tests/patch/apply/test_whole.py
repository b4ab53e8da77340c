"""Field sets of whole values: the compiled functions equal a plain walk."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubist.model.patch.apply import managers, sets, update_managed_fields
from kubist.model.patch.apply.empty import empty
from kubist.model.patch.apply.sets import LEAF, SELF, Set
from kubist.model.patch.apply.typed import FREE, BadValue, Type, type_of
from kubist.model.patch.apply.whole import everything
from kubist.model.schema.catalog import schema_for
from kubist.model.schema.decode import decode
from tests.schema.strategies import TEXT, fitting

from .thing import THING, things

POD = schema_for("", "v1", "Pod")
KIND = type_of(POD)
RESET = ("status",)
SOME = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

_names = st.sampled_from(["a", "b", "C", "é", "<x>", 'q"', "10", "9"]) | TEXT
_variables = st.fixed_dictionaries(
    {"name": _names},
    optional={"value": TEXT, "valueFrom": st.just({"fieldRef": {"fieldPath": "metadata.name"}})},
)
_ports = st.fixed_dictionaries(
    {"containerPort": st.integers(1, 12)},
    optional={"protocol": st.sampled_from(["TCP", "UDP"]), "name": _names},
)
_containers = st.fixed_dictionaries(
    {"name": _names},
    optional={
        "image": TEXT,
        "env": st.lists(_variables, max_size=4),
        "ports": st.lists(_ports, max_size=4),
        "resources": st.just({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1"}}),
        "args": st.lists(TEXT, max_size=2),
    },
)
_pods = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": _names},
            optional={
                "labels": st.dictionaries(_names, TEXT, max_size=3),
                "finalizers": st.lists(_names, max_size=3),
                "ownerReferences": st.lists(
                    st.fixed_dictionaries({"uid": _names, "name": _names}), max_size=2
                ),
            },
        ),
        "spec": st.fixed_dictionaries(
            {"containers": st.lists(_containers, max_size=2)},
            optional={
                "nodeSelector": st.dictionaries(_names, TEXT, max_size=2),
                "tolerations": st.just([{"key": "k", "operator": "Exists"}]),
                "securityContext": st.just({}),
            },
        ),
    },
    optional={"status": st.just({"phase": "Running"})},
)
pods = (_pods | fitting(POD)).map(lambda sent: decode(POD, {"apiVersion": "v1", "kind": "Pod", **sent}))


def plainly(kind: Type, value: Any) -> Set:
    if isinstance(value, dict):
        split = kind.map
        if not value or split is None or split.atomic:
            return LEAF
        children = ((split.child(key), item) for key, item in value.items())
        return _node({child[0]: plainly(child[1], item) for child, item in children if child is not None})
    if isinstance(value, list):
        items = kind.list
        if not value or items is None or items.atomic:
            return LEAF
        names = [items.name(item) for item in value]
        found = zip(names, value, strict=True)
        return _node(
            {name: LEAF if names.count(name) > 1 else plainly(items.element, item) for name, item in found}
        )
    return LEAF


def _node(children: Set) -> Set:
    return sets.ordered({SELF: LEAF, **children})


def spelled(fields: Set) -> bytes:
    """JSON text, because clients see the order of a set."""
    return orjson.dumps(fields)


def check_against_plain_walk(kind: Type, value: dict[str, Any]) -> None:
    try:
        expected = plainly(kind, value)
    except BadValue:
        with pytest.raises(BadValue):
            everything(kind, value)
    else:
        assert spelled(everything(kind, value)) == spelled(expected)


@given(pods)
@SOME
def test_field_set_of_a_pod_equals_a_plain_walk(pod: dict[str, Any]) -> None:
    check_against_plain_walk(KIND, pod)


@given(st.lists(things, min_size=1, max_size=3))
@SOME
def test_field_set_of_a_thing_equals_a_plain_walk(many: list[dict[str, Any]]) -> None:
    for thing in [*many, *many]:
        check_against_plain_walk(type_of(THING), thing)


@given(pods)
@SOME
def test_creator_of_a_pod_owns_all_fields_but_zero_values(pod: dict[str, Any]) -> None:
    pod["metadata"].pop("managedFields", None)
    try:
        held = sets.difference(plainly(KIND, pod), plainly(KIND, empty(POD)))
    except BadValue:
        return
    held = {element: node for element, node in held.items() if element != SELF}
    update_managed_fields(POD, None, pod, manager="me", api_version="v1", reset_fields=RESET, now="now")
    expected = managers.tracked(sets.recursive_difference(held, sets.dotted(*RESET)))
    entries = pod["metadata"].get("managedFields") or [{"fieldsV1": {}}]
    assert [spelled(entry["fieldsV1"]) for entry in entries] == [spelled(expected)]


@given(st.recursive(TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=10))
def test_value_without_schema_is_split_at_maps(value: Any) -> None:
    assert spelled(everything(FREE, value)) == spelled(plainly(FREE, value))


def test_list_keys_of_other_types_are_ordered() -> None:
    parts = type_of(THING)
    value = {"set": ["b", "a", "b"], "ports": [{"port": 10}, {"port": 9, "protocol": "UDP"}, {"port": 9}]}
    assert spelled(everything(parts, value)) == spelled(plainly(parts, value))


def test_shape_cache_is_bounded() -> None:
    labels = KIND.map.child("metadata")[1].map.child("labels")[1]  # type: ignore[union-attr, index]
    assert labels.map is not None
    for number in range(2 * labels.map.shapes.entries):
        assert everything(labels, {f"k{number}": ""}) == {SELF: LEAF, f"f:k{number}": LEAF}
    assert len(labels.map.shapes) <= labels.map.shapes.entries
