"""CRDs as large as those of well-known operators: install, all verbs, changes, speed."""

from __future__ import annotations

import copy
import json
import time
from types import ModuleType
from typing import Any

import pytest

from kubist.model.meta.object import Object
from tests.crd.defining import CRDS, await_status, define
from tests.crd.definitions import certificate, database, monitor, pipeline, route
from tests.crd.definitions.building import node_count, rule_count
from tests.live import Client, Live
from tests.waiting import wait_for

OPERATORS = {
    module.__name__.rpartition(".")[2]: module for module in (certificate, database, monitor, pipeline, route)
}
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Installed:
    """CRD of an operator, installed on a server."""

    def __init__(self, client: Client, operator: ModuleType) -> None:
        self.client = client
        self.operator = operator
        spec = operator.DEFINITION["spec"]
        self.kind: str = spec["names"]["kind"]
        self.at = define(client, operator.DEFINITION)
        self.plural: str = spec["names"]["plural"]
        self.api_version = f"{spec['group']}/v1"

    def path(self, name: str = "", version: str = "v1") -> str:
        return f"{self.at}/{version}/namespaces/default/{self.plural}" + (f"/{name}" if name else "")

    def sample(self, name: str = "sample") -> Object:
        spec = copy.deepcopy(self.operator.SAMPLE)
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module", params=OPERATORS)
def installed(request: pytest.FixtureRequest, shared_live: Live) -> Installed:
    return Installed(shared_live.client, OPERATORS[request.param])


def schema_of(operator: ModuleType) -> Object:
    found: Object = operator.DEFINITION["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def test_sample_crds_are_as_large_as_real_ones() -> None:
    assert node_count(schema_of(pipeline)) >= 3000 and rule_count(schema_of(pipeline)) >= 20
    assert node_count(schema_of(monitor)) >= 1000
    assert sum(rule_count(schema_of(operator)) for operator in OPERATORS.values()) >= 50


def contains(value: Any, part: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(value, dict) and all(contains(value.get(key), inner) for key, inner in part.items())
    if isinstance(part, list):
        return isinstance(value, list) and len(value) == len(part) and all(map(contains, value, part))
    return bool(value == part)


def test_samples_are_returned_with_defaults(installed: Installed) -> None:
    client, operator = installed.client, installed.operator
    made = client.post(installed.path(), installed.sample("round"))
    assert contains(made["spec"], operator.SAMPLE) and contains(made["spec"], operator.DEFAULTED)
    read = client.get(installed.path("round"))
    assert read == made
    assert client.put(installed.path("round"), read) == made, "what is read can be written"
    listed = client.get(installed.path())
    assert "round" in [item["metadata"]["name"] for item in listed["items"]]
    client.delete(installed.path("round"))


def test_invalid_fields_are_rejected_by_name(installed: Installed) -> None:
    client = installed.client
    made = client.post(installed.path(), installed.sample("wrong"))
    for patch, fields in installed.operator.WRONG:
        answer = client.ask("PATCH", installed.path("wrong"), {"spec": patch}, "application/merge-patch+json")
        assert answer.status == 422, patch
        assert [cause["field"] for cause in answer.json["details"]["causes"]] == fields, patch
    assert client.get(installed.path("wrong")) == made
    client.delete(installed.path("wrong"))


def test_watch_sees_patches_and_applies(installed: Installed) -> None:
    client, operator = installed.client, installed.operator
    made = client.post(installed.path(), installed.sample("watched"))
    since = made["metadata"]["resourceVersion"]
    selector = f"fieldSelector=metadata.name=watched&resourceVersion={since}"
    with client.watch(f"{installed.path()}?{selector}") as watch:
        patched = client.patch(installed.path("watched"), {"spec": operator.PATCH})
        assert contains(patched["spec"], operator.PATCH) and patched["metadata"]["generation"] == 2
        configuration = installed.sample("watched")
        configuration["metadata"]["labels"] = {"applied": "yes"}
        del configuration["spec"]
        applied = client.ask(
            "PATCH",
            installed.path("watched") + "?fieldManager=me&dryRun=All",
            configuration,
            "application/apply-patch+yaml",
        )
        assert applied.status == 200 and applied.json["metadata"]["labels"] == {"applied": "yes"}
        client.patch(installed.path("watched") + "/status", {"status": {"conditions": [CONDITION]}})
        client.delete(installed.path("watched"))
        events = watch.take(3)
    assert [event["type"] for event in events] == ["MODIFIED", "MODIFIED", "DELETED"]
    assert events[0]["object"] == patched
    if installed.operator is not route:
        assert events[1]["object"]["status"]["conditions"] == [CONDITION]


CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "Fine",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def test_tables_and_selectors_follow_the_crd(installed: Installed) -> None:
    client, operator = installed.client, installed.operator
    client.post(installed.path(), installed.sample("shown"))
    connection = client.connect()
    connection.request("GET", installed.path("shown"), headers=client.headers(Accept=TABLE))
    table = json.loads(connection.getresponse().read())
    connection.close()
    cells = table["rows"][0]["cells"]
    assert cells[0] == "shown" and cells[1 : 1 + len(operator.CELLS)] == operator.CELLS
    if operator.SELECTED:
        found = client.get(f"{installed.path()}?fieldSelector={operator.SELECTED}")["items"]
        assert "shown" in [item["metadata"]["name"] for item in found]
    client.delete(installed.path("shown"))


def test_scale_and_other_versions_show_the_same_object(installed: Installed) -> None:
    client = installed.client
    versions = [found["name"] for found in installed.operator.DEFINITION["spec"]["versions"]]
    made = client.post(installed.path(), installed.sample("viewed"))
    for version in versions[1:]:
        other = client.get(installed.path("viewed", version))
        assert other["spec"] == made["spec"] and other["apiVersion"].endswith(version)
    if "scale" in installed.operator.DEFINITION["spec"]["versions"][0]["subresources"]:
        scaled = client.patch(installed.path("viewed") + "/scale", {"spec": {"replicas": 5}})
        assert scaled["spec"]["replicas"] == 5
        assert client.get(installed.path("viewed"))["metadata"]["generation"] == 2
    client.delete(installed.path("viewed"))


def test_stricter_schema_tolerates_unchanged_values(live: Live) -> None:
    client = live.client
    database_ = Installed(client, database)
    client.post(database_.path(), database_.sample("old"))
    name = database.DEFINITION["metadata"]["name"]
    held = client.get(f"{CRDS}/{name}")
    for found in held["spec"]["versions"]:
        spec = found["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"]["parameters"]["additionalProperties"]["maxLength"] = 2
        spec["x-kubernetes-validations"].append({"rule": "self.instances > 4", "message": "more than four"})
    client.put(f"{CRDS}/{name}", held)
    await_status(client, database_.path(), 200)
    dry_run = database_.path() + "?dryRun=All"
    wait_for(lambda: client.ask("POST", dry_run, database_.sample("new")).status == 422)
    kept = client.ask("PATCH", database_.path("old"), {"metadata": {"labels": {"a": "b"}}}, MERGE)
    assert kept.status == 200, "nothing that is now wrong was touched"
    touched = client.ask("PATCH", database_.path("old"), {"spec": {"parameters": {"x": "long"}}}, MERGE)
    fields = {cause["field"] for cause in touched.json["details"]["causes"]}
    assert (
        touched.status == 422
        and "spec.parameters.x" in fields
        and "spec.parameters.max_connections" not in fields
    )


MERGE = "application/merge-patch+json"


def test_crd_with_5000_schema_nodes_takes_under_a_second_of_cpu(live: Live) -> None:
    big = copy.deepcopy(monitor.DEFINITION)
    properties = big["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    extra = copy.deepcopy(pipeline.SPEC["properties"]["template"])
    properties["spec"]["properties"] |= {f"template{number}": copy.deepcopy(extra) for number in range(4)}
    assert node_count({"type": "object", "properties": properties}) >= 5000
    live.client.get("/version")
    before = time.process_time()
    live.client.post(CRDS, big)
    assert time.process_time() - before < 1.0, "CPU of server and client together, on a shared machine"
