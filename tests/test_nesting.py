"""Deeply nested objects are stored or rejected, never answered with 500."""

from __future__ import annotations

from typing import Any

from tests.crd.defining import define, definition, version
from tests.live import Client


def test_objects_of_every_depth_are_stored_or_rejected(client: Client, namespace: str) -> None:
    """managedFields nest a few levels deeper than the object itself, and a JSON patch can nest the object again."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    group = define(client, definition("Nest", "nest.example.com", version(schema=schema)))
    path = f"{group}/v1/namespaces/{namespace}/nests"
    copied = [{"op": "copy", "from": "/spec", "path": "/spec/copy"}]
    moved: list[Any] = [
        {"op": "move", "from": "/spec", "path": "/old"},
        {"op": "add", "path": "/spec", "value": {}},
        {"op": "move", "from": "/old", "path": "/spec/old"},
    ]
    seen = set()
    for depth in range(230, 260):
        spec: Any = 1
        for _ in range(depth):
            spec = {"a": spec}
        name = f"deep-{depth}"
        nest = {"apiVersion": "nest.example.com/v1", "kind": "Nest", "metadata": {"name": name}, "spec": spec}
        made = client.ask("POST", path, nest).status
        seen.add(made)
        assert made in (201, 400), depth
        for patch in (copied, moved * 3) if made == 201 else ():
            answer = client.ask("PATCH", f"{path}/{name}", patch, "application/json-patch+json")
            seen.add(answer.status)
            assert answer.status in (200, 422), (depth, answer)
    assert seen == {200, 201, 400, 422}
