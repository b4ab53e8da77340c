"""Every operation of the control API takes and returns what its OpenAPI document says."""

from __future__ import annotations

import http.client
import json
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kubist.testing import Cluster
from tests.bench.schema_check import problems
from tests.waiting import wait_for

ROOT = "/kubist/v1/"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "web", "image": "web"}]},
}
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class Checked:
    """Sends requests and compares body, status and response with the document."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.document = cluster.request("GET", ROOT + "openapi.json")
        self.used: set[tuple[str, str]] = {("get", ROOT + "openapi.json")}

    @contextmanager
    def _connection(self) -> Iterator[http.client.HTTPSConnection]:
        context = ssl.create_default_context(cafile=self._cluster.ca)
        found = http.client.HTTPSConnection("127.0.0.1", self._cluster.port, context=context, timeout=30)
        try:
            yield found
        finally:
            found.close()

    def __call__(self, method: str, path: str, body: Any = None, code: int = 200) -> Any:
        shown, operation = self._operation(method, ROOT + path.partition("?")[0])
        self.used.add((method.lower(), shown))
        sent = None if body is None else json.dumps(body)
        if body is not None and code < 300:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            assert not list(problems(self.document, schema, body))
        headers = {"Authorization": f"Bearer {self._cluster.token}", "Content-Type": "application/json"}
        with self._connection() as connection:
            connection.request(method, ROOT + path, sent, headers)
            answer = connection.getresponse()
            raw = answer.read()
        assert answer.status == code, raw
        described = operation["responses"].get(str(code))
        if described is None:
            assert code >= 400, f"{method} {path}: status {code} is not described"
            described = operation["responses"]["default"]
        if "content" not in described:
            assert raw == b""
            return None
        [(media_type, content)] = described["content"].items()
        assert answer.headers["Content-Type"] == media_type
        lines = raw.splitlines() if media_type == "application/jsonl" else [raw]
        found = [json.loads(line) for line in lines]
        for each in found:
            assert not list(problems(self.document, content["schema"], each))
        return found[0] if media_type == "application/json" else found

    def _operation(self, method: str, path: str) -> tuple[str, Any]:
        fitting = [
            shown
            for shown in self.document["paths"]
            if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", shown), path)
        ]
        shown = path if path in fitting else fitting[0]
        return shown, self.document["paths"][shown][method.lower()]


def use_clock(check: Checked) -> None:
    for body in ({"advance": 1.5}, {"advance": "1h", "speed": 2}, {"frozen": True}, {"offset": "-1s"}, {}):
        check("PUT", "clock", body)
    check("GET", "clock")
    check("PUT", "clock", {"speed": -1}, 422)
    check("DELETE", "clock")


def use_faults(check: Checked) -> None:
    rules: list[dict[str, Any]] = [
        {
            "verb": ["get", "list"],
            "resource": "secrets",
            "status": 503,
            "retryAfter": 2,
            "reason": "R",
            "message": "m",
        },
        {
            "name": "a*",
            "labelSelector": "a=b",
            "expression": "true",
            "nth": 2,
            "delay": "1ms",
            "delayAfter": 0.5,
        },
        {"userAgent": "x", "every": 3, "times": 4, "close": "after"},
        {"probability": 0.5, "seed": 3, "user": "nobody", "truncate": 5},
        {"resource": "leases", "cutAfter": 3, "pause": "1s", "delayEvents": 1, "withholdBookmarks": True},
        {"resource": "leases", "staleRead": True},
        {"expireHistory": True},
        {"takeLease": "me", "namespace": "default", "name": "l", "leaseDuration": "30s"},
    ]
    for rule in rules:
        made = check("POST", "faults", rule, 201)
    check("GET", "faults")
    check("GET", f"faults/{made['id']}")
    check("DELETE", f"faults/{made['id']}")
    check("GET", f"faults/{made['id']}", code=404)
    check("DELETE", "faults")
    check("POST", "faults", {"stauts": 1}, 422)


def use_recordings(check: Checked) -> None:
    cluster = check._cluster
    made = check("POST", "recordings", {"resource": ["configmaps", "pods"], "maxEntries": 100}, 201)
    cluster.request("POST", CONFIG_MAPS, {"metadata": {"name": "recorded"}})
    cluster.request("PATCH", f"{CONFIG_MAPS}/recorded", {"data": {"a": "b"}}, "application/merge-patch+json")
    cluster.request("DELETE", f"{CONFIG_MAPS}?labelSelector=none")
    with pytest.raises(Exception, match="not found"):
        cluster.request("GET", f"{CONFIG_MAPS}/none")
    headers = {"Authorization": f"Bearer {cluster.token}"}
    with check._connection() as connection:
        connection.request("GET", f"{CONFIG_MAPS}?watch=1", headers=headers)
        connection.getresponse().readline()
        wait_for(lambda: check("GET", "watchers")["items"])
        assert len(check("GET", f"recordings/{made['id']}")) == 5
    assert check("GET", "requests")[-1]["verb"] == "watch"
    check("GET", "recordings")
    check("DELETE", f"recordings/{made['id']}")
    check("GET", f"recordings/{made['id']}", code=404)


def use_snapshots(check: Checked) -> None:
    check("POST", "snapshots", {"name": "ready"}, 201)
    check("POST", "snapshots", {"name": "ready"}, 409)
    check("GET", "snapshots")
    check("GET", "snapshots/ready")
    check("POST", "snapshots/ready/restore")
    check("DELETE", "snapshots/ready")


def use_clusters(check: Checked) -> None:
    body = {"name": "a", "timeToLive": "1h", "controllers": [], "limits": {"objects": 1000}, "manifests": ""}
    check("POST", "clusters", body, 201)
    check("POST", "clusters", {"fork": "a", "timeToLive": 60}, 201)
    check("POST", "clusters", body, 422)
    check("GET", "clusters")
    check("GET", "clusters/a")
    check("GET", "clusters/a/kubeconfig")
    check("DELETE", "clusters/a")
    check("GET", "clusters/a", code=404)


def use_users_and_authorizers(check: Checked) -> None:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    check("POST", "users", {"name": "a", "groups": ["g"], "rules": rules, "namespace": "default"}, 201)
    check("GET", "users")
    check("DELETE", "users/a", code=204)
    check("POST", "serviceaccounts", {"name": "a", "namespace": "new", "rules": rules}, 201)
    check("POST", "serviceaccounts", {"name": "A"}, 422)
    webhook = {"name": "a", "clientConfig": {"url": "https://127.0.0.1:1/a"}, "timeout": 2}
    check("POST", "authorizers", webhook | {"failurePolicy": "NoOpinion"}, 201)
    check("GET", "authorizers")
    check("DELETE", "authorizers/a", code=204)


def use_workloads(check: Checked) -> None:
    check("POST", "pods/usage", {"name": "web", "cpu": "100m", "memory": "1Mi"})
    check("POST", "pods/ready", {"name": "web", "ready": True, "container": "web"})
    check("POST", "pods/outcome", {"name": "web", "outcome": ""})
    check("POST", "pods/fail", {"name": "web", "exitCode": 3, "reason": "OOMKilled", "message": "m"})
    wait_for(lambda: check._cluster.get("pod/web")["status"]["containerStatuses"][0]["restartCount"] == 1)
    check._cluster.wait("pod/web", "Ready")
    check("POST", "pods/succeed", {"namespace": "default"})
    check("POST", "pods/crash-loop", {"name": "web", "exitCode": 3})
    check("POST", "pods/fail", {"labelSelector": "none=here"}, 404)
    check("POST", "nodes/not-ready", {"name": "kubist-node-1"})
    check("POST", "nodes/ready", {"labelSelector": "kubernetes.io/hostname=kubist-node-1"})


@pytest.mark.filterwarnings("ignore::kubist.testing.plugin.UnusedFaultWarning")
def test_every_operation_is_described() -> None:
    with Cluster(clusters=True, workloads=True) as cluster:
        cluster.load(POD)
        cluster.wait("pod/web", "Ready")
        check = Checked(cluster)
        for use in (use_clock, use_faults, use_recordings, use_snapshots, use_clusters):
            use(check)
        use_users_and_authorizers(check)
        use_workloads(check)
    paths = check.document["paths"].items()
    assert check.used == {(method, path) for path, operations in paths for method in operations}
