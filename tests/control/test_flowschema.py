"""Dangling condition of FlowSchemas."""

from __future__ import annotations

import time
from typing import Any

from tests.live import Client, Live

FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"


def told(client: Client, name: str, wanted: str) -> dict[str, Any]:
    """The condition of a FlowSchema, once it has the wanted status."""
    for _ in range(200):
        schema: dict[str, Any] = client.get(f"{FLOW}/flowschemas/{name}")
        for condition in schema.get("status", {}).get("conditions") or ():
            if condition["status"] == wanted:
                return schema | {"condition": condition}
        time.sleep(0.02)
    raise AssertionError(f"{name} was never told {wanted}")


def test_dangling_condition_follows_the_priority_level(live: Live) -> None:
    client = live.client
    spec = {"priorityLevelConfiguration": {"name": "level"}}
    client.post(f"{FLOW}/flowschemas", {"metadata": {"name": "schema"}, "spec": spec})
    schema = told(client, "schema", "True")
    assert schema["condition"]["reason"] == "NotFound"
    managers = [(entry["manager"], entry["operation"]) for entry in schema["metadata"]["managedFields"]]
    assert managers[0] == ("api-priority-and-fairness-config-consumer-v1", "Apply")
    limited = {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}}
    level = {"metadata": {"name": "level"}, "spec": {"type": "Limited", "limited": limited}}
    client.post(f"{FLOW}/prioritylevelconfigurations", level)
    assert told(client, "schema", "False")["condition"]["reason"] == "Found"
    client.delete(f"{FLOW}/prioritylevelconfigurations/level")
    again = told(client, "schema", "True")
    assert len(again["metadata"]["managedFields"]) == len(schema["metadata"]["managedFields"])
    client.close()


def test_built_in_flow_schemas_are_not_changed(live: Live) -> None:
    time.sleep(0.2)
    for schema in live.client.get(f"{FLOW}/flowschemas")["items"]:
        assert schema["status"]["conditions"][0]["status"] == "False"
        assert (
            schema["metadata"]["creationTimestamp"] == schema["status"]["conditions"][0]["lastTransitionTime"]
        )
    live.client.close()
