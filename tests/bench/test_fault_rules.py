"""Rules of faults: what they match, and how invalid ones are rejected."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from kubist.api import request as requests
from kubist.model.meta.object import Object
from kubist.testbench.faults.matching import ResourcePattern
from kubist.testing import Cluster
from kubist.testing.cluster import Refused
from tests.bench.fault_clients import FAULTS, MAPS, ask, code, config_map

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"

# Many tests look at rules that do not act.
pytestmark = pytest.mark.filterwarnings("ignore::kubist.testing.plugin.UnusedFaultWarning")


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("configmaps", MAPS, True),
        ("configmaps", f"{MAPS}/a", True),
        ("pods", MAPS, False),
        ("deployments", DEPLOYMENTS, True),
        ("deployments.apps", DEPLOYMENTS, True),
        ("deployments.batch", DEPLOYMENTS, False),
        ("*.apps", DEPLOYMENTS, True),
        ("*.example.com", "/apis/example.com/v1/widgets", True),
        ("deploy*", DEPLOYMENTS, True),
        ("deployments", f"{DEPLOYMENTS}/d/status", False),
        ("deployments/status", f"{DEPLOYMENTS}/d/status", True),
        ("deployments/status", f"{DEPLOYMENTS}/d", False),
        ("deployments.apps/*", f"{DEPLOYMENTS}/d/scale", True),
        ("deployments/*", f"{DEPLOYMENTS}/d", False),
        ("*/status", f"{DEPLOYMENTS}/d/status", True),
        ("*", f"{DEPLOYMENTS}/d/status", True),
        ("*", MAPS, True),
        ("*", "/version", False),
    ],
)
def test_resource_patterns(pattern: str, path: str, matches: bool) -> None:
    assert ResourcePattern.parse(pattern).matches(requests.parse("GET", path, {})) == matches


@pytest.mark.parametrize("pattern", ["", "/status", "pods/", "pods.", ".apps", "a/b/c", "Deployment"])
def test_impossible_resource_patterns(pattern: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        ResourcePattern.parse(pattern)


MATCHING: list[tuple[Object, str]] = [
    ({"verb": "get"}, "get version"),
    ({"verb": ["get", "delete"]}, "get delete version"),
    ({"resource": "configmaps"}, "get list create update delete"),
    ({"resource": ["pods", "config*"]}, "get list create update delete"),
    ({"namespace": "default"}, "get list create update delete"),
    ({"namespace": "def*"}, "get list create update delete"),
    ({"namespace": "other"}, ""),
    ({"name": "a"}, "get update delete"),
    ({"name": "new"}, "create"),
    ({"name": ["a", "new"]}, "get create update delete"),
    ({"labelSelector": "app=web"}, "get update delete"),
    ({"labelSelector": "app in (new)"}, "create"),
    ({"labelSelector": "app=other"}, ""),
    ({"user": "admin"}, "get list create update delete version"),
    ({"user": "ad*"}, "get list create update delete version"),
    ({"user": "alice"}, ""),
    ({"userAgent": "kubectl/"}, "get"),
    ({"userAgent": ["curl", "kubectl"]}, "get"),
    ({"userAgent": "ctl"}, ""),
    ({"expression": 'request.verb == "create"'}, "create"),
    ({"expression": 'request.path == "/version"'}, "version"),
    ({"expression": '"system:masters" in request.groups && request.user == "admin"'},
     "get list create update delete version"),
    ({"expression": 'request.userAgent.matches("^kube")'}, "get"),
    ({"expression": 'request.object.data.k == "2"'}, "update"),
    ({"expression": 'request.oldObject.data.k == "1"'}, "get update delete"),
    ({"expression": "has(request.object.metadata) && !has(request.oldObject)"}, "create"),
    ({"expression": 'request.object.data.k != request.oldObject.data.k'}, "update"),
    ({"expression": 'request.query["limit"] == "5"'}, "list"),
    ({"expression": 'request.resource + request.subresource + request.group + request.version == "configmapsv1"'},
     "get list create update delete"),
    ({"expression": 'request.name == "a" && request.namespace == "default"'}, "get update delete"),
    ({"verb": "get", "namespace": "default", "name": "a", "user": "admin", "labelSelector": "app"}, "get"),
    ({"verb": "create", "expression": "request.object"}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("criteria", "expected"), MATCHING, ids=str)
def test_matching(kubist_server: Cluster, criteria: Object, expected: str) -> None:
    kubist_server.load(config_map("a", {"app": "web"}, k="1"))
    new = config_map("new", {"app": "new"})
    changed = config_map("a", {"app": "other-than-stored"}, k="2")
    sent: list[tuple[str, str, str, Any, dict[str, str]]] = [
        ("get", "GET", f"{MAPS}/a", None, {"User_Agent": "kubectl/v1.36"}),
        ("list", "GET", f"{MAPS}?limit=5", None, {}),
        ("create", "POST", f"{MAPS}?dryRun=All", new, {}),
        ("update", "PUT", f"{MAPS}/a?dryRun=All", changed, {}),
        ("delete", "DELETE", f"{MAPS}/a?dryRun=All", None, {}),
        ("version", "GET", "/version", None, {}),
    ]
    rule = {"status": 418, **criteria}
    fault = kubist_server.request("POST", FAULTS, rule)
    try:
        found = [
            name
            for name, method, path, body, headers in sent
            if code(kubist_server, method, path, body, **headers) == 418
        ]
    finally:
        kubist_server.request("DELETE", f"{FAULTS}/{fault['id']}")
    assert " ".join(found) == expected


def test_objects_are_read_from_yaml_and_protobuf(cluster: Cluster) -> None:
    cluster.faults.add(expression='request.object.data.k == "1"', label_selector="app", status=418)
    from kubist.model.codec import protobuf
    from kubist.model.schema.catalog import schema_for
    from tests.bench.fault_clients import connect

    made = config_map("a", {"app": "web"}, k="1")
    encoded = protobuf.wrap("v1", "ConfigMap", protobuf.encode(schema_for("", "v1", "ConfigMap"), made))
    text = b"metadata: {name: a, labels: {app: web}}\ndata: {k: '1'}\n"
    for kind, body in (
        ("application/vnd.kubernetes.protobuf", encoded),
        ("application/yaml", text),
    ):
        connection = connect(cluster)
        headers = {"Authorization": f"Bearer {cluster.token}", "Content-Type": kind}
        connection.request("POST", MAPS, body, headers)
        assert connection.getresponse().status == 418
        connection.close()
    assert code(cluster, "POST", MAPS, "no object") == 400


INVALID: list[tuple[Object, list[str]]] = [
    ({}, ["status"]),
    ({"verb": "get"}, ["status"]),
    ({"stauts": 500}, ["status", "stauts"]),
    ({"status": 200}, ["status"]),
    ({"status": 600}, ["status"]),
    ({"status": "409"}, ["status"]),
    ({"status": True}, ["status"]),
    ({"status": 500, "verb": "gte"}, ["verb"]),
    ({"status": 500, "verb": []}, ["verb"]),
    ({"status": 500, "verb": 5}, ["verb"]),
    ({"status": 500, "resource": "Deployment"}, ["resource"]),
    ({"status": 500, "resource": ["pods", "pods/"]}, ["resource"]),
    ({"status": 500, "resource": ["x"] * 101}, ["resource"]),
    ({"status": 500, "namespace": ""}, ["namespace"]),
    ({"status": 500, "labelSelector": "a in"}, ["labelSelector"]),
    ({"status": 500, "expression": "request.verb =="}, ["expression"]),
    ({"status": 500, "expression": "request.verb"}, ["expression"]),
    ({"status": 500, "expression": "object.spec"}, ["expression"]),
    ({"status": 500, "expression": "x" * 20_000}, ["expression"]),
    ({"status": 500, "nth": 0}, ["nth"]),
    ({"status": 500, "every": -1}, ["every"]),
    ({"status": 500, "times": 0}, ["times"]),
    ({"status": 500, "times": 1.5}, ["times"]),
    ({"status": 500, "nth": 1, "every": 2}, ["every"]),
    ({"status": 500, "probability": 0}, ["probability"]),
    ({"status": 500, "probability": 1.5}, ["probability"]),
    ({"status": 500, "seed": 3}, ["seed"]),
    ({"status": 500, "retryAfter": "-1s"}, ["retryAfter"]),
    ({"status": 500, "message": ""}, ["message"]),
    ({"reason": "Conflict", "delay": 1}, ["reason"]),
    ({"delay": "soon"}, ["delay"]),
    ({"delay": 0}, ["delay"]),
    ({"delay": "2h"}, ["delay"]),
    ({"delayAfter": True}, ["delayAfter"]),
    ({"close": "now"}, ["close"]),
    ({"close": "before", "status": 500}, ["close"]),
    ({"close": "before", "delayAfter": 1}, ["delayAfter"]),
    ({"status": 500, "delayAfter": 1}, ["delayAfter"]),
    ({"truncate": -1}, ["truncate"]),
    ({"truncate": 5, "close": "after"}, ["close"]),
    ({"cutAfter": -1}, ["cutAfter"]),
    ({"cutAfter": 0, "status": 500}, ["cutAfter"]),
    ({"cutAfter": 0, "verb": "get"}, ["verb"]),
    ({"pause": "1s", "close": "after"}, ["pause"]),
    ({"withholdBookmarks": False}, ["withholdBookmarks"]),
    ({"withholdBookmarks": "yes"}, ["withholdBookmarks"]),
    ({"staleRead": False}, ["staleRead"]),
    ({"staleRead": "x"}, ["staleRead"]),
    ({"staleRead": 5}, ["staleRead"]),
    ({"staleRead": "999999999"}, ["staleRead"]),
    ({"staleRead": True, "verb": "update"}, ["verb"]),
    ({"expireHistory": True, "name": "a"}, ["name"]),
    ({"expireHistory": True, "times": 1}, ["times"]),
    ({"takeLease": "me"}, ["namespace", "name"]),
    ({"takeLease": "me", "namespace": "default", "name": "l*"}, ["name"]),
    ({"takeLease": "", "namespace": "default", "name": "l"}, ["takeLease"]),
    ({"takeLease": "me", "namespace": "default", "name": "l", "user": "x"}, ["user"]),
    ({"delay": 1, "leaseDuration": 5}, ["leaseDuration"]),
    ({"status": None}, ["status"]),
    ({"withholdBookmarks": None, "staleRead": None}, ["status"]),
    ({"status": 500, "bogus": None}, ["bogus"]),
]


@pytest.mark.parametrize(("rule", "named"), INVALID, ids=lambda value: str(value)[:60])
def test_invalid_rules_are_rejected_and_change_nothing(
    kubist_server: Cluster, rule: Object, named: list[str]
) -> None:
    got, body, _ = ask(kubist_server, "POST", FAULTS, rule)
    assert got == 422, body
    assert [cause["field"] for cause in body["details"]["causes"]] == named
    assert len(kubist_server.faults) == 0
    assert "serve" not in vars(kubist_server.inner.api)


def test_rule_that_is_no_object_is_rejected(kubist_server: Cluster) -> None:
    bodies: list[Any] = [[], "text", 5]
    for body in bodies:
        assert code(kubist_server, "POST", FAULTS, body) == 400


def test_python_arguments(kubist_server: Cluster) -> None:
    faults = kubist_server.faults
    with pytest.raises(TypeError, match='no argument "stauts"; did you mean "status"'):
        faults.add(stauts=500)  # type: ignore[arg-type]
    with pytest.raises(Refused, match=r"verb: .* did you mean"):
        faults.add(verb="updat", status=500)
    with faults.add(verb=("get", "list"), delay=datetime.timedelta(milliseconds=1)) as fault:
        [found] = faults
        assert found.id == fault.id and found.hits == 0
        assert repr(fault) == f"<fault {fault.id}: verb=['get', 'list'], delay=0.001; hits 0 of 0 matches>"
    fault.remove()
    assert "removed" in repr(fault)
    with pytest.raises(TimeoutError, match="hits 0 of 0 matches"):
        fault.wait(timeout=0.01)


def test_unknown_field_gets_a_hint(kubist_server: Cluster) -> None:
    _, body, _ = ask(kubist_server, "POST", FAULTS, {"status": 500, "labelselector": "a"})
    assert 'unknown field; did you mean "labelSelector"?' in body["message"]
