"""managedFields: names of field managers, and the fields that each owns after a write."""

from __future__ import annotations

from typing import Any

import pytest

from tests.live import Client

APPLY = "application/apply-patch+yaml"


@pytest.fixture
def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def config_map(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}


def owned(obj: dict[str, Any]) -> dict[tuple[str, str], set[str]]:
    """Keys of `data` that each manager owns, by name and operation."""
    return {
        (entry["manager"], entry["operation"]): set(entry["fieldsV1"].get("f:data", {})) - {"."}
        for entry in obj["metadata"]["managedFields"]
    }


def test_creator_owns_all_fields(client: Client, maps: str) -> None:
    created = client.post(f"{maps}?fieldManager=one", config_map(a="1", b="2"))
    assert owned(created) == {("one", "Update"): {"f:a", "f:b"}}


def test_changed_field_gets_a_new_manager(client: Client, maps: str) -> None:
    client.post(f"{maps}?fieldManager=one", config_map(a="1", b="2"))
    updated = client.put(f"{maps}/c?fieldManager=two", config_map(a="1", b="3"))
    assert owned(updated) == {("one", "Update"): {"f:a"}, ("two", "Update"): {"f:b"}}


def test_removed_field_has_no_manager(client: Client, maps: str) -> None:
    client.post(f"{maps}?fieldManager=one", config_map(a="1", b="2"))
    patched = client.patch(f"{maps}/c?fieldManager=two", {"data": {"b": None}})
    assert owned(patched) == {("one", "Update"): {"f:a"}}


def test_apply_of_a_field_of_another_manager_conflicts(client: Client, maps: str) -> None:
    client.post(f"{maps}?fieldManager=one", config_map(a="1"))
    answer = client.ask("PATCH", f"{maps}/c?fieldManager=two", config_map(a="2"), APPLY)
    assert answer.status == 409
    assert answer.json["details"]["causes"][0]["field"] == ".data.a"
    forced = client.patch(f"{maps}/c?fieldManager=two&force=true", config_map(a="2"), APPLY)
    assert owned(forced)[("two", "Apply")] == {"f:a"}
    assert owned(forced)[("one", "Update")] == set()


def test_equal_values_are_owned_together(client: Client, maps: str) -> None:
    client.post(f"{maps}?fieldManager=one", config_map(a="1"))
    applied = client.patch(f"{maps}/c?fieldManager=two", config_map(a="1"), APPLY)
    assert owned(applied) == {("one", "Update"): {"f:a"}, ("two", "Apply"): {"f:a"}}


def test_empty_managed_fields_reset_the_owners(client: Client, maps: str) -> None:
    created = client.post(f"{maps}?fieldManager=one", config_map(a="1"))
    created["metadata"]["managedFields"] = [{}]
    assert "managedFields" not in client.put(f"{maps}/c", created)["metadata"]
