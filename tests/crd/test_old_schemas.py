"""Memory of CRDs that change or are deleted."""

from __future__ import annotations

import gc

from kubist.api.resources.resource import Resource
from kubist.model.schema.node import Schema
from tests.crd.defining import CRDS, await_status, define, definition, version
from tests.live import MERGE, Client, Live
from tests.waiting import wait_for

ROUNDS = 10


def schema(number: int) -> dict[str, object]:
    """Schema that names a field of its own."""
    return {"type": "object", "properties": {f"field{number}": {"type": "string"}}}


def kept() -> tuple[int, int]:
    """Resources of the CRD, and schemas that describe it, which are still in memory."""
    gc.collect()
    reached = gc.get_objects()
    resources = sum(type(found) is Resource and found.group == "old.example" for found in reached)
    schemas = sum(
        type(found) is Schema
        and any(name.startswith("field") and name[5:].isdigit() for name in found.fields)
        for found in reached
        if type(found) is Schema and not found.name
    )
    return resources, schemas


def write(client: Client, path: str, number: int) -> bool:
    """Creates an object with the field of a schema, in all ways that derive something from it."""
    collection = f"{path}/v1/namespaces/default/things"
    body = {"apiVersion": "old.example/v1", "kind": "Thing", f"field{number}": "a"}
    named = {**body, "metadata": {"name": f"thing{number}"}}
    if client.ask("POST", f"{collection}?fieldValidation=Strict", named).status != 201:
        return False
    named[f"field{number}"] = "b"
    client.ask("PATCH", f"{collection}/thing{number}?fieldManager=m", named, "application/apply-patch+yaml")
    client.ask("PATCH", f"{collection}/thing{number}", {f"field{number}": "c"}, MERGE)
    client.ask("DELETE", f"{collection}/thing{number}")
    return True


def test_replaced_and_deleted_schemas_leave_the_memory(live: Live) -> None:
    path = define(live.client, definition("Thing", "old.example", version(schema=schema(0))))
    name = f"{CRDS}/things.old.example"
    for number in range(ROUNDS):
        change = {"spec": {"versions": [version(schema=schema(number))]}}
        assert live.client.ask("PATCH", name, change, MERGE).status == 200
        wait_for(lambda number=number: write(live.client, path, number))  # type: ignore[misc]
    wait_for(lambda: max(kept()) <= 3, explain=kept)
    live.client.ask("DELETE", name)
    await_status(live.client, f"{path}/v1/things", 404)
    wait_for(lambda: max(kept()) <= 1, explain=kept)
