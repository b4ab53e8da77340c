"""Server-side apply of custom resources beyond the recorded conversations: numbers, embedded metadata,
several versions."""

from __future__ import annotations

from kubist.model.meta.object import Object
from tests.crd.defining import define, definition, obj, version
from tests.live import Live

APPLY = "application/apply-patch+yaml"
SCALE = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
SCHEMA: Object = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "inner": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
            },
        },
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    },
}


def defined(live: Live, kind: str) -> tuple[str, str]:
    """Path of an object in each of two versions."""
    group = f"{kind.lower()}.example.com"
    subresources = {"status": {}, "scale": SCALE}
    versions = (version(name, SCHEMA, subresources=subresources) for name in ("v1", "v2"))
    at = define(live.client, definition(kind, group, *versions))
    v1, v2 = (f"{at}/{name}/namespaces/default/{kind.lower()}s/one" for name in ("v1", "v2"))
    return v1, v2


def test_apply_stores_whole_float_as_integer(live: Live) -> None:
    path, _ = defined(live, "Num")
    applied = obj("Num", "num.example.com/v1", "one", spec={"size": 2.0})
    answer = live.client.ask("PATCH", f"{path}?fieldManager=m", applied, APPLY)
    assert (answer.status, answer.json["spec"]) == (201, {"size": 2})


def test_apply_decodes_embedded_metadata(live: Live) -> None:
    path, _ = defined(live, "Emb")
    inner = {"apiVersion": "v1", "kind": "X", "metadata": None}
    applied = obj("Emb", "emb.example.com/v1", "one", spec={"inner": inner})
    answer = live.client.ask("PATCH", f"{path}?fieldManager=m", applied, APPLY)
    assert (answer.status, answer.json["spec"]["inner"]["metadata"]) == (201, {})


def test_status_keeps_its_manager_unless_updated_in_another_version(live: Live) -> None:
    v1, v2 = defined(live, "Two")
    live.client.ask("PATCH", f"{v1}?fieldManager=m", obj("Two", "two.example.com/v1", "one"), APPLY)
    reported = obj("Two", "two.example.com/v1", "one", status={"phase": "x"})
    live.client.ask("PATCH", f"{v1}/status?fieldManager=reporter", reported, APPLY)

    def reporters(held: Object) -> list[str]:
        entries = held["metadata"].get("managedFields") or ()
        return [entry["manager"] for entry in entries if "f:status" in entry["fieldsV1"]]

    def replaced(path: str, size: int) -> Object:
        held = live.client.get(path)
        held.pop("status")
        held["spec"] = {"size": size}
        answer = live.client.ask("PUT", f"{path}?fieldManager=writer", held)
        assert answer.json["status"] == {"phase": "x"}
        new: Object = answer.json
        return new

    assert reporters(replaced(v1, 1)) == ["reporter"]
    assert reporters(replaced(v2, 2)) == []
