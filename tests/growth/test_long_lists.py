"""Lists that once cost quadratic time, each with the write that showed it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kubist.model.meta.object import Object
from tests.crd.defining import define, definition, version
from tests.growth.measuring import APPLY, JSON, JSON_PATCH, STRATEGIC, Prober
from tests.live import Live

COUNT = 2_000
NAMESPACE = "/api/v1/namespaces/default"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
THINGS = "/apis/growth.example.com/v1/namespaces/default/things"
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
Case = tuple[str, str, Callable[[int], Any], str, int]
"""Verb, path, function for the body with n items, content type, and expected status."""


def pod(**spec: Any) -> Object:
    return {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "a", "image": "a"}], **spec}}


def container(**fields: Any) -> Object:
    return pod(containers=[{"name": "a", "image": "a", **fields}])


def owner(number: int, **more: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "name": f"p{number}", "uid": f"u{number}", **more}


def owned(owners: list[Object]) -> Object:
    return {"metadata": {"name": "x", "ownerReferences": owners}}


def managed(entries: list[Object]) -> Object:
    return {"metadata": {"name": "x", "managedFields": entries}, "data": {"a": "b"}}


def manager(number: int, api_version: str = "v1", operation: str = "Update") -> Object:
    fields: Object = {"f:data": {f"f:k{number}": {}}}
    entry = {"manager": f"m{number}", "operation": operation, "apiVersion": api_version}
    return {**entry, "fieldsType": "FieldsV1", "fieldsV1": fields}


def policy(count: int) -> Object:
    rule = {"operations": ["CREATE"], "apiGroups": ["x"], "apiVersions": ["v1"], "resources": ["x"]}
    variables = [{"name": "v0", "expression": "1"}]
    variables += [{"name": f"v{n}", "expression": f"variables.v{n - 1} + 1"} for n in range(1, count // 20)]
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]}
    return {"metadata": {"name": "x"}, "spec": {**spec, "variables": variables}}


def thing(**fields: Any) -> Object:
    return {"apiVersion": "growth.example.com/v1", "kind": "Thing", "metadata": {"name": "x"}, **fields}


def storage_class(topologies: list[Object]) -> Object:
    return {"metadata": {"name": "x"}, "provisioner": "a", "allowedTopologies": topologies}


CASES: dict[str, Case] = {
    "owners": (
        "POST", f"{NAMESPACE}/configmaps", lambda n: owned([owner(i) for i in range(n)]), JSON, 201),
    "owners that are all controllers": (
        "POST", f"{NAMESPACE}/configmaps",
        lambda n: owned([owner(i, controller=True) for i in range(n)]), JSON, 422),
    "host aliases of one address": (
        "POST", f"{NAMESPACE}/pods", lambda n: pod(hostAliases=[{"ip": "10.0.0.1"}] * n), JSON, 201),
    "variables of one name": (
        "POST", f"{NAMESPACE}/pods", lambda n: container(env=[{"name": "A", "value": "b"}] * n), JSON, 201),
    "spread constraints": (
        "POST", f"{NAMESPACE}/pods",
        lambda n: pod(topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": f"a/b{i}", "whenUnsatisfiable": "DoNotSchedule"} for i in range(n)
        ]), JSON, 201),
    "claims of a container": (
        "POST", f"{NAMESPACE}/pods",
        lambda n: container(resources={"claims": [{"name": f"c{i}"} for i in range(n)]})
        | {"resourceClaims": [{"name": f"d{i}"} for i in range(n)]}, JSON, 422),
    "ports of one number": (
        "POST", f"{NAMESPACE}/pods",
        lambda n: container(ports=[
            {"containerPort": 80, "hostPort": i + 1, "hostIP": "10.0.0.1"} for i in range(n)
        ]), JSON, 201),
    "files of a volume": (
        "POST", f"{NAMESPACE}/pods",
        lambda n: pod(volumes=[{"name": "v", "configMap": {
            "name": "c", "items": [{"key": "k", "path": f"p{i}/q"} for i in range(n)]}}]), JSON, 201),
    "AppArmor annotations of containers": (
        "POST", f"{NAMESPACE}/pods",
        lambda n: {
            "metadata": {"name": "x", "annotations": {f"{APP_ARMOR}c{i}": "unconfined" for i in range(n // 2)}},
            "spec": {"containers": [{"name": f"c{i}", "image": "a"} for i in range(n)]},
        }, JSON, 201),
    "node ports": (
        "POST", f"{NAMESPACE}/services",
        lambda n: {"metadata": {"name": "x"}, "spec": {"type": "NodePort", "ports": [
            {"name": f"p{i}", "port": i + 1} for i in range(n)]}}, JSON, 201),
    "unknown scopes": (
        "POST", f"{NAMESPACE}/resourcequotas",
        lambda n: {"metadata": {"name": "x"}, "spec": {"scopes": [f"S{i}" for i in range(n)]}}, JSON, 422),
    "equal topologies": (
        "POST", "/apis/storage.k8s.io/v1/storageclasses",
        lambda n: storage_class([{"matchLabelExpressions": [{"key": "a", "values": ["b"]}]}] * n), JSON, 422),
    "updaters": (
        "POST", f"{NAMESPACE}/configmaps", lambda n: managed([manager(i) for i in range(n)]), JSON, 201),
    "updaters of unknown versions": (
        "POST", f"{NAMESPACE}/configmaps",
        lambda n: managed([manager(i, f"v{i}") for i in range(n)]), JSON, 201),
    "appliers": (
        "POST", f"{NAMESPACE}/configmaps",
        lambda n: managed([manager(i, "v1", "Apply") for i in range(n)]), JSON, 201),
    "variables of a policy": ("POST", POLICIES, policy, JSON, 201),
    "addresses of a node": (
        "PUT", "/api/v1/nodes/growing/status",
        lambda n: {"metadata": {"name": "growing"}, "status": {"addresses": [
            {"type": "InternalIP", "address": f"a{i}"} for i in range(n)]}}, JSON, 200),
    "an ordered patch": (
        "PATCH", f"{NAMESPACE}/serviceaccounts/growing",
        lambda n: {"$setElementOrder/secrets": [{"name": f"s{i}"} for i in range(n)],
                   "secrets": [{"name": f"s{i}"} for i in range(n)]}, STRATEGIC, 200),
    "operations at the head of a list": (
        "PATCH", f"{NAMESPACE}/serviceaccounts/growing",
        lambda n: [{"op": "add", "path": "/secrets", "value": []}]
        + [{"op": "add", "path": "/secrets/0", "value": {"name": f"s{i}"}} for i in range(n)],
        JSON_PATCH, 200),
    "copies of a JSON patch": (
        "PATCH", f"{NAMESPACE}/serviceaccounts/growing",
        lambda n: [{"op": "add", "path": "/secrets", "value": [{"name": f"s{i}"} for i in range(n)]}]
        + [{"op": "copy", "from": f"/secrets/{i}/name", "path": f"/secrets/{i}/namespace"} for i in range(n)],
        JSON_PATCH, 200),
    "an applied keyed list": (
        "PATCH", f"{NAMESPACE}/serviceaccounts/growing",
        lambda n: {"apiVersion": "v1", "kind": "ServiceAccount",
                   "secrets": [{"name": f"s{i * 7 % n}"} for i in range(n)]}, APPLY, 200),
    "repeated keys of JSON": (
        "POST", f"{NAMESPACE}/configmaps",
        lambda n: b'{"metadata":{"name":"x"},"data":{%b}}' % b",".join([b'"a":""'] * n), JSON, 201),
    "a keyed list of a custom object": (
        "POST", THINGS, lambda n: thing(keyed=[{"name": f"a{i}"} for i in range(n)]), JSON, 201),
    "equal keys of a custom object": (
        "POST", THINGS, lambda n: thing(keyed=[{"name": "a"}] * n), JSON, 422),
    "a set of a custom object": ("POST", THINGS, lambda n: thing(set=[f"a{i}" for i in range(n)]), JSON, 201),
    "equal members of a set": ("POST", THINGS, lambda n: thing(set=["a"] * n), JSON, 422),
    "wrong items of a custom object": ("POST", THINGS, lambda n: thing(plain=[0] * n), JSON, 422),
}  # fmt: skip


@pytest.fixture(scope="session")
def things(growing_live: Live) -> Live:
    """Server with the objects that the cases change, and a custom resource with all list types."""
    text = {"type": "string"}
    item = {"type": "object", "required": ["name"], "properties": {"name": text}}
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": item}
    lists: Object = {
        "keyed": {"type": "array", **keyed},
        "set": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "plain": {"type": "array", "items": text},
    }
    schema = {"type": "object", "properties": lists}
    client = growing_live.client
    define(client, definition("Thing", "growth.example.com", version(schema=schema)))
    client.post("/api/v1/nodes", {"metadata": {"name": "growing"}})
    client.post(f"{NAMESPACE}/serviceaccounts", {"metadata": {"name": "growing"}})
    return growing_live


@pytest.mark.parametrize("case", CASES)
def test_thousands_of_items_cost_linear_time(things: Live, prober: Prober, case: str) -> None:
    method, path, body, content_type, code = CASES[case]

    def request(count: int) -> tuple[int, float]:
        sent = body(count)
        raw = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        query = "?dryRun=All&fieldManager=other&force=true" if content_type == APPLY else "?dryRun=All"
        status, seconds, answer = prober.send(method, path + query, raw, content_type)
        assert status == code, answer[:500]
        return status, seconds

    grown = prober.grows(case, request, COUNT)
    assert grown is None, str(grown)


def test_response_with_very_many_causes_is_truncated(things: Live, prober: Prober) -> None:
    body = {"metadata": {"name": "x", "finalizers": [""] * 50_000}}
    status, _, answer = prober.send("POST", f"{NAMESPACE}/configmaps", body)
    assert status == 422
    assert len(answer) < 20 << 20
    assert json.loads(answer)["message"].endswith(" more")


def test_large_service_gets_distinct_node_ports(things: Live) -> None:
    ports = [{"name": f"p{n}", "port": n + 1} for n in range(300)]
    service = {"metadata": {"name": "many-ports"}, "spec": {"type": "NodePort", "ports": ports}}
    made = things.client.post(f"{NAMESPACE}/services", service)
    assert len({port["nodePort"] for port in made["spec"]["ports"]}) == 300
    things.client.delete(f"{NAMESPACE}/services/many-ports")
