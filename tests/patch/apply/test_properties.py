"""Properties that hold for every apply."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubist.model.patch.apply import paths, sets
from kubist.model.patch.apply.fields import claimed, with_structs
from kubist.model.patch.apply.merge import merge, remove
from kubist.model.patch.apply.typed import type_of
from kubist.model.patch.apply.validate import problems
from kubist.model.patch.apply.whole import everything

from .thing import THING, World

_texts = st.sampled_from(["", "x", "y"])
_names = st.sampled_from(["p", "q", "r"])
_maps = st.dictionaries(st.sampled_from(["k", "l", "m"]), _texts, min_size=1, max_size=3)
_inner = st.fixed_dictionaries({}, optional={"x": _texts, "y": _texts, "deep": st.just({"z": "1"})})
_part = st.fixed_dictionaries(
    {"name": _names},
    optional={
        "size": st.integers(0, 2),
        "tags": st.lists(_texts, unique=True, min_size=1),
        "labels": _maps,
    },
)
_port = st.fixed_dictionaries(
    {"port": st.integers(1, 3)}, optional={"protocol": st.sampled_from(["TCP", "UDP"]), "name": _texts}
)
_free = st.recursive(
    _texts | st.integers(0, 2),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=2)
    ),
    max_leaves=5,
)
_configurations = st.fixed_dictionaries(
    {},
    optional={
        "a": _texts,
        "b": _texts,
        "count": st.integers(0, 2),
        "inner": _inner.filter(bool),
        "map": _maps,
        "whole": _maps,
        "list": st.lists(_texts, min_size=1, max_size=3),
        "set": st.lists(_texts, unique=True, min_size=1, max_size=3),
        "parts": st.lists(_part, unique_by=lambda part: part["name"], min_size=1, max_size=3),
        "ports": st.lists(
            _port, unique_by=lambda p: (p["port"], p.get("protocol", "TCP")), min_size=1, max_size=3
        ),
        "free": st.dictionaries(st.sampled_from("abc"), _free, min_size=1, max_size=2),
    },
)
_managers = st.sampled_from(["one", "two", "three"])
KIND = type_of(THING)
FEW = settings(max_examples=40)


@given(st.lists(st.tuples(_managers, _configurations), max_size=4), _managers, _configurations)
@FEW
def test_apply_is_idempotent(history: list[Any], manager: str, config: dict[str, Any]) -> None:
    world = World()
    for earlier, applied in history:
        world.apply(applied, earlier, force=True)
    world.apply(config, manager, force=True)
    once = copy.deepcopy(world.object)
    world.apply(config, manager)
    assert world.object == once


@given(_configurations, _configurations)
@FEW
def test_applying_the_last_configuration_again_changes_nothing(
    config: dict[str, Any], update: dict[str, Any]
) -> None:
    world = World()
    world.update(update, "user")
    world.apply(config, "one", force=True)
    before = copy.deepcopy(world.object)
    world.apply(config, "one", force=True)
    assert world.object == before


@given(
    _configurations, st.sets(st.sampled_from(sorted(set(THING.fields) - {"apiVersion", "kind", "metadata"})))
)
@FEW
def test_appliers_of_disjoint_fields_commute(config: dict[str, Any], mine: set[str]) -> None:
    left = {key: value for key, value in config.items() if key in mine}
    right = {key: value for key, value in config.items() if key not in mine}
    one, other = World(), World()
    one.apply(left, "left")
    one.apply(right, "right")
    other.apply(right, "right")
    other.apply(left, "left")
    assert one.content == other.content
    assert one.owners == other.owners


@given(st.lists(st.tuples(_managers, _configurations, st.booleans()), min_size=1, max_size=5))
@FEW
def test_every_field_of_the_object_is_owned(history: list[Any]) -> None:
    world = World()
    for manager, content, by_update in history:
        if by_update and world.object is not None:
            world.update(content, manager)
        else:
            world.apply(content, manager, force=True)
    assert world.object is not None
    if not world.owners:
        return
    owned = sets.of_paths()
    for entry in world.object["metadata"]["managedFields"]:
        owned = sets.union(owned, entry["fieldsV1"])
    leaves = {paths.format_path(path) for path in sets.paths(claimed(KIND, world.content))}
    assert leaves <= {paths.format_path(path) for path in sets.paths(owned)}


@given(_configurations)
def test_removing_a_configuration_from_itself_leaves_nothing(config: dict[str, Any]) -> None:
    fields = with_structs(KIND, claimed(KIND, config))
    assert remove(KIND, config, fields) is None


@given(_configurations, _configurations)
@FEW
def test_merge_contains_both_configurations(live: dict[str, Any], config: dict[str, Any]) -> None:
    merged = merge(KIND, live, config)
    assert not problems(KIND, merged)
    fields = claimed(KIND, merged)
    assert not sets.difference(claimed(KIND, config), fields)
    assert merge(KIND, merged, config) == merged


@given(_configurations)
def test_claimed_fields_exist_in_the_configuration(config: dict[str, Any]) -> None:
    assert not sets.difference(claimed(KIND, config), everything(KIND, config))
