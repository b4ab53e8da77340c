"""managedFields entries: updates, entries sent by clients, the cap on updaters, and sorting."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.model.patch.apply import managers, update_managed_fields
from kubist.model.schema.catalog import schema_for

from .thing import API_VERSION, World

CONFIG_MAP = schema_for("", "v1", "ConfigMap")


def config_map(**content: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}, **content}


def written(new: dict[str, Any], live: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    options = {"manager": "m", "api_version": "v1", "now": "2026-01-01T00:00:00Z", **options}
    update_managed_fields(CONFIG_MAP, live, new, **options)
    return new


def entry(manager: str, fields: Any, **changes: Any) -> dict[str, Any]:
    made = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2025-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **changes,
    }
    return {key: value for key, value in made.items() if value is not None}


def test_an_entry_is_written_in_full() -> None:
    assert written(config_map(data={"k": "v"}), subresource="status")["metadata"]["managedFields"] == [
        {
            "manager": "m",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:k": {}}},
            "subresource": "status",
        }
    ]


def test_empty_manager_name_becomes_unknown() -> None:
    made = written(config_map(data={"k": "v"}), manager="")
    assert made["metadata"]["managedFields"][0]["manager"] == "unknown"


def test_object_created_without_fields_stays_untracked() -> None:
    live = written(config_map())
    assert "managedFields" not in live["metadata"]
    assert "managedFields" not in written(config_map(data={"k": "v"}), live)["metadata"]


@pytest.mark.parametrize("reset", [[{}], [{"manager": ""}]])
def test_client_can_reset_managed_fields(reset: Any) -> None:
    live = written(config_map(data={"k": "v"}))
    new = config_map(data={"k": "w"})
    new["metadata"]["managedFields"] = reset
    assert "managedFields" not in written(new, live)["metadata"]
    assert "managedFields" not in written(config_map(data={"k": "w"}), live, cleared=True)["metadata"]


def test_managed_fields_sent_to_a_subresource_are_ignored() -> None:
    live = written(config_map(data={"k": "v"}))
    new = config_map(data={"k": "v"})
    new["metadata"]["managedFields"] = [{}]
    assert written(new, live, subresource="status")["metadata"] == live["metadata"]


def test_valid_entries_replace_the_stored_ones() -> None:
    live = written(config_map(data={"k": "v"}))
    new = config_map(data={"k": "v"})
    new["metadata"]["managedFields"] = [entry("other", {"f:data": {"f:k": {}}})]
    assert written(new, live)["metadata"]["managedFields"] == new["metadata"]["managedFields"]
    assert [e["manager"] for e in new["metadata"]["managedFields"]] == ["other"]


@pytest.mark.parametrize(
    "bad",
    [
        entry("x", {}, operation="Delete"),
        entry("x", {}, apiVersion=None),
        entry("x", {}, fieldsType=None),
        entry("x", {}, fieldsType="FieldsV2"),
        entry("x", {"data": {}}),
        entry("x", {'v:"': {}}),
    ],
)
def test_malformed_entries_are_ignored(bad: dict[str, Any]) -> None:
    live = written(config_map(data={"k": "v"}))
    new = config_map(data={"k": "v"})
    new["metadata"]["managedFields"] = [bad]
    assert managers.validate([bad])
    assert written(new, live)["metadata"]["managedFields"] == live["metadata"]["managedFields"]


def test_entries_without_fields_or_of_unknown_versions_are_dropped() -> None:
    live = written(config_map(data={"k": "v"}))
    new = config_map(data={"k": "v"})
    new["metadata"]["managedFields"] = [
        entry("future", {"x:y": {}}),
        entry("ancient", {"f:data": {}}, apiVersion="v0"),
    ]
    assert "managedFields" not in written(new, live)["metadata"]


def test_entries_sent_with_a_create_lose_fields_that_it_sets() -> None:
    new = config_map(data={"k": "v"})
    new["metadata"]["managedFields"] = [
        entry("forged", {"f:data": {"f:k": {}}}),
        entry("else", {"f:binaryData": {}}),
    ]
    assert [e["manager"] for e in written(new)["metadata"]["managedFields"]] == ["else", "m"]


def test_entries_are_sorted_by_operation_time_manager_version_and_subresource() -> None:
    entries = [
        entry("z", {"f:a": {}}, operation="Apply", time=None),
        entry("a", {"f:a": {}}, operation="Apply"),
        entry("s", {"f:a": {}}, time=None),
        entry("a", {"f:a": {}}),
        entry("b", {"f:a": {}}),
        entry("b", {"f:a": {}}, subresource="status"),
        entry("b", {"f:a": {}}, apiVersion="v2"),
        entry("a", {"f:b": {}}, apiVersion="v3", time="2025-01-02T00:00:00Z"),
    ]
    assert managers.encode(managers.decode(reversed(entries), trusted=True)) == entries


def test_oldest_updaters_are_merged_into_ancient_changes() -> None:
    world = World()
    data = {}
    for n in range(13):
        data[f"k{n}"] = "v"
        world.update({"map": dict(data)}, f"m{n:02}")
    assert world.object is not None
    entries = world.object["metadata"]["managedFields"]
    assert [e["manager"] for e in entries] == ["ancient-changes", *(f"m{n:02}" for n in range(4, 13))]
    assert world.owners["ancient-changes (update)"] == [".map", ".map.k0", ".map.k1", ".map.k2", ".map.k3"]
    assert entries[0]["time"] == "2026-01-01T00:00:04Z"


def test_appliers_are_not_capped() -> None:
    world = World()
    for n in range(12):
        world.apply({"map": {f"k{n}": "v"}}, f"m{n:02}")
    assert len(world.owners) == 12


def test_manager_has_an_entry_per_operation_version_and_subresource() -> None:
    world = World()
    world.apply({"a": "x"}, "m")
    world.update({"a": "x", "b": "y"}, "m")
    world.update({"a": "x", "b": "y", "count": 1}, "m", subresource="status")
    assert world.object is not None
    ways = [(e["operation"], e.get("subresource")) for e in world.object["metadata"]["managedFields"]]
    assert ways == [("Apply", None), ("Update", None), ("Update", "status")]


def test_unchanged_update_leaves_entries_unchanged() -> None:
    world = World()
    world.update({"a": "x"}, "one")
    assert world.object is not None
    before = world.object["metadata"]["managedFields"]
    world.update({"a": "x"}, "two")
    assert world.object["metadata"]["managedFields"] == before


def test_object_that_no_longer_fits_its_schema_loses_its_entries() -> None:
    world = World()
    world.update({"a": "x", "count": 1}, "one")
    assert world.object is not None
    world.object["count"] = "many"
    world.update({"a": "y", "count": "many"}, "two")
    assert world.owners == {}


def test_duplicate_list_items_are_owned_as_one() -> None:
    world = World()
    world.update({"set": ["x", "x", "y"], "parts": [{"name": "p"}, {"name": "p", "size": 1}]}, "one")
    assert world.owners == {
        "one (update)": [".parts", ".set", '.parts[name="p"]', '.set[="x"]', '.set[="y"]']
    }
    world.update({"set": ["x", "y"], "parts": [{"name": "p", "size": 1}]}, "two")
    assert world.owners == {
        "one (update)": [".parts", ".set", '.set[="y"]'],
        "two (update)": ['.parts[name="p"]', '.parts[name="p"].name', '.parts[name="p"].size', '.set[="x"]'],
    }


def test_fields_of_other_api_versions_need_a_conversion() -> None:
    world = World()
    world.update({"a": "x"}, "one", api_version="example.com/v0")
    world.update({"a": "x", "b": "y"}, "two", api_version=API_VERSION)
    assert world.owners == {"two (update)": [".b"]}
