"""Server-side apply: table of cases, and properties of every apply."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.model.meta.status import APIError
from kubist.model.patch.apply import apply
from kubist.model.patch.errors import ApplyConflict
from kubist.model.schema.node import Schema

from ..tables import table
from .thing import API_VERSION, FIELDS, THING, World, struct, text


@pytest.mark.parametrize("case", table("apply"))
def test_apply(case: dict[str, Any]) -> None:
    world = World()
    for step in case["steps"]:
        options = {"force": True} if step.get("force") else {}
        if "update" in step:
            world.update(step["update"], step["by"])
        elif "conflicts" in step:
            with pytest.raises(ApplyConflict) as refused:
                world.apply(step["apply"], step["by"])
            assert [cause["field"] for cause in refused.value.causes] == step["conflicts"]
        elif "refused" in step:
            with pytest.raises(APIError) as failed:
                world.apply(step["apply"], step["by"])
            assert step["refused"] in failed.value.message
        else:
            world.apply(step["apply"], step["by"], **options)
    if "object" in case:
        assert world.content == case["object"]
    if "owners" in case:
        assert world.owners == case["owners"]


def test_apply_conflict_names_manager_and_field() -> None:
    world = World()
    world.apply({"a": "x"}, "one")
    with pytest.raises(ApplyConflict) as refused:
        world.apply({"a": "y"}, "two")
    error = refused.value
    assert (error.code, error.reason) == (409, "Conflict")
    assert error.message == 'Apply failed with 1 conflict: conflict with "one": .a'
    assert error.details == {
        "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".a"}]
    }


def test_several_conflicts_are_grouped_by_manager() -> None:
    world = World()
    world.apply({"a": "x", "map": {"k": "v"}}, "one")
    world.update({"a": "x", "b": "y", "map": {"k": "v"}}, "user", subresource="status")
    with pytest.raises(ApplyConflict) as refused:
        world.apply({"a": "1", "b": "2", "map": {"k": "3"}}, "two")
    assert refused.value.message == (
        'Apply failed with 3 conflicts: conflicts with "one":\n- .a\n- .map.k\n'
        f'conflicts with "user" with subresource "status" using {API_VERSION}:\n- .b'
    )


def test_entry_time_changes_only_with_the_object() -> None:
    world = World()
    world.apply({"a": "x"}, "one")
    before = world.object
    world.apply({"a": "x"}, "one")
    assert world.object == before
    world.apply({"a": "y"}, "one")
    assert world.object is not None
    assert world.object["metadata"]["managedFields"][0]["time"] == "2026-01-01T00:00:03Z"


def test_apply_without_changes_adds_an_entry_without_time() -> None:
    world = World()
    world.apply({"a": "x"}, "one")
    world.apply({"a": "x"}, "two")
    assert world.object is not None
    entries = {entry["manager"]: entry for entry in world.object["metadata"]["managedFields"]}
    assert "time" not in entries["two"]
    assert [entry["manager"] for entry in world.object["metadata"]["managedFields"]] == ["two", "one"]


def test_apply_does_not_modify_its_arguments() -> None:
    live = {"apiVersion": API_VERSION, "kind": "Thing", "metadata": {"name": "x"}, "map": {"k": "v"}}
    applied = {"apiVersion": API_VERSION, "kind": "Thing", "metadata": {"name": "x"}, "map": {"l": "w"}}
    before = repr((live, applied))
    apply(THING, live, applied, manager="one", api_version=API_VERSION, now="2026-01-01T00:00:00Z")
    assert repr((live, applied)) == before


def test_reset_fields_are_neither_owned_nor_in_conflict() -> None:
    world = World()
    world.apply({"a": "x", "b": "y"}, "one", reset_fields=("b",))
    assert world.owners == {"one": [".a"]}
    world.apply({"b": "z"}, "two", reset_fields=("b",))
    assert world.owners == {"one": [".a"]}


def test_field_that_became_atomic_is_owned_as_a_whole() -> None:
    world = World()
    world.apply({"map": {"k": "v"}, "parts": [{"name": "p", "size": 1}], "a": "x"}, "one")
    changes = {
        "map": Schema("map", items=text, map_type="atomic"),
        "parts": Schema("list", items=FIELDS["parts"].items, list_type="atomic"),
    }
    world.schema = struct(**{**FIELDS, **changes})
    world.update({**world.content, "b": "y"}, "user")
    assert world.owners == {"one": [".a", ".map", ".parts"], "user (update)": [".b"]}


def test_field_that_became_granular_stays_with_its_owner() -> None:
    world = World()
    world.apply({"whole": {"k": "v"}}, "one")
    world.schema = struct(**{**FIELDS, "whole": FIELDS["map"]})
    world.apply({"whole": {"l": "w"}}, "two")
    assert world.owners == {"one": [".whole"], "two": [".whole.l"]}
