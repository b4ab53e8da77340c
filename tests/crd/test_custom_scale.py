"""Scale of a custom resource whose replicas path does not fit the schema or the object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.crd.defining import CRDS, await_status, define, definition, version
from tests.live import MERGE, Answer, Client, Live

GROUP = "scaled.example.com"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
APPLY = "application/apply-patch+yaml"
SPEC = {"type": "object", "properties": {"x": {"type": "string"}, "r": {"type": "integer"}}}
SCHEMA = {"type": "object", "properties": {"spec": SPEC}}


def crd(kind: str, path: str) -> dict[str, Any]:
    scale = {"specReplicasPath": path, "statusReplicasPath": ".status.replicas"}
    return definition(kind, GROUP, version(schema=SCHEMA, subresources={"scale": scale}))


@pytest.fixture(scope="module")
def undeclared(shared_live: Live) -> Iterator[str]:
    """Path of custom resources whose replicas path is not in their schema."""
    where = define(shared_live.client, crd("Odd", ".spec.none"))
    yield f"{where}/v1/namespaces/default/odds"
    shared_live.client.delete(f"{CRDS}/odds.{GROUP}")


def odd(name: str, kind: str = "Odd", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize("verb", ["PUT", "PATCH"])
@pytest.mark.parametrize("dry_run", ["", "?dryRun=All"])
def test_undeclared_replicas_are_pruned(client: Client, undeclared: str, verb: str, dry_run: str) -> None:
    name = f"{verb.lower()}{'-dry' * bool(dry_run)}"
    client.post(undeclared, odd(name, x="y"))
    where = f"{undeclared}/{name}"
    scale = {"metadata": {"name": name}, "spec": {"replicas": 3}}
    content_type = MERGE if verb == "PATCH" else "application/json"
    answer = client.ask(verb, f"{where}/scale{dry_run}", scale, content_type)
    assert answer.status == 200, answer
    assert answer.json["spec"] == {}
    held = client.get(where)
    assert held["spec"] == {"x": "y"}
    assert held["metadata"]["managedFields"]
    applied = client.ask("PATCH", f"{where}?fieldManager=m&force=true", odd(name, x="z"), APPLY)
    assert applied.status == 200, applied
    assert client.ask("GET", f"{where}/scale").status == 500


def test_negative_replicas_are_rejected_before_pruning(client: Client, undeclared: str) -> None:
    client.post(undeclared, odd("negative"))
    answer = client.ask("PATCH", f"{undeclared}/negative/scale", {"spec": {"replicas": -1}}, MERGE)
    assert answer.status == 422, answer
    assert "should be a non-negative integer" in answer.json["message"]


def test_scale_table_shows_missing_replicas(client: Client, undeclared: str) -> None:
    client.post(undeclared, odd("shown"))
    connection = client.connect()
    try:
        body = b'{"metadata":{"name":"shown"},"spec":{"replicas":3}}'
        headers = client.headers(Accept=TABLE, **{"Content-Type": "application/json"})
        connection.request("PUT", f"{undeclared}/shown/scale", body, headers)
        answer = Answer(connection.getresponse())
    finally:
        connection.close()
    assert answer.status == 200, answer
    assert answer.json["rows"][0]["cells"][:3] == ["shown", None, 0]


def test_scale_path_through_a_string_is_500(client: Client) -> None:
    """An update of the CRD moves the replicas path below a field that is a string in existing objects."""
    where = f"{define(client, crd('Moved', '.spec.r'))}/v1/namespaces/default/moveds"
    client.post(where, odd("a", "Moved", x="y", r=1))
    scale = {"specReplicasPath": ".spec.x.r", "statusReplicasPath": ".status.replicas"}
    versions = [version(schema=SCHEMA, subresources={"scale": scale})]
    client.patch(f"{CRDS}/moveds.{GROUP}", {"spec": {"versions": versions}})
    why = ".spec.x.r accessor error: y is of the type string, expected map[string]interface{}"
    got = await_status(client, f"{where}/a/scale", 500)
    assert (got.json["message"], "reason" in got.json) == (why, False)
    body = {"metadata": {"name": "a"}, "spec": {"replicas": 3}}
    for verb, content_type in (("PUT", "application/json"), ("PATCH", MERGE)):
        answer = client.ask(verb, f"{where}/a/scale", body, content_type)
        assert (answer.status, answer.json["message"]) == (500, why)
    client.delete(f"{CRDS}/moveds.{GROUP}")
