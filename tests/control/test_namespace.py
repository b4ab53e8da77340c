"""Deletion of namespaces with all their content."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from kubist.testing import Cluster
from kubist.testing.cluster import Refused
from tests.crd.defining import definition
from tests.waiting import wait_for

CRD = definition("Widget", "example.com")
POD = {"containers": [{"name": "c", "image": "i"}]}
LABELS = {"matchLabels": {"a": "b"}}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
JOB_TEMPLATE = {"spec": {**POD, "restartPolicy": "Never"}}
RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
ROLE_REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"}
WORKLOAD = {"selector": LABELS, "template": TEMPLATE}
KINDS: dict[str, dict[str, Any]] = {
    "api/v1/configmaps": {"data": {"a": "b"}},
    "api/v1/secrets": {},
    "api/v1/services": {"spec": {"clusterIP": "None", "ports": [{"port": 80}]}},
    "api/v1/serviceaccounts": {},
    "api/v1/pods": {"spec": POD},
    "api/v1/endpoints": {},
    "api/v1/persistentvolumeclaims": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}
    },
    "api/v1/podtemplates": {"template": TEMPLATE},
    "api/v1/replicationcontrollers": {"spec": {"selector": {"a": "b"}, "template": TEMPLATE}},
    "api/v1/limitranges": {},
    "apis/apps/v1/deployments": {"spec": WORKLOAD},
    "apis/apps/v1/replicasets": {"spec": WORKLOAD},
    "apis/apps/v1/daemonsets": {"spec": WORKLOAD},
    "apis/apps/v1/statefulsets": {"spec": {**WORKLOAD, "serviceName": "s"}},
    "apis/batch/v1/jobs": {"spec": {"template": JOB_TEMPLATE}},
    "apis/batch/v1/cronjobs": {
        "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": JOB_TEMPLATE}}}
    },
    "apis/rbac.authorization.k8s.io/v1/roles": {"rules": RULES},
    "apis/rbac.authorization.k8s.io/v1/rolebindings": {"roleRef": ROLE_REF},
    "apis/networking.k8s.io/v1/networkpolicies": {"spec": {"podSelector": {}}},
    "apis/networking.k8s.io/v1/ingresses": {"spec": {"defaultBackend": BACKEND}},
}


def fill(cluster: Cluster, namespace: str, each: int) -> None:
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    cluster.wait("sa/default", lambda account: True, namespace=namespace)
    for kind, body in KINDS.items():
        root, _, resource = kind.rpartition("/")
        for n in range(each):
            path = f"/{root}/namespaces/{namespace}/{resource}"
            cluster.request("POST", path, {"metadata": {"name": f"x{n}"}, **body})


def test_namespace_deletion_deletes_a_thousand_objects_of_twenty_kinds(cluster: Cluster) -> None:
    assert len(KINDS) == 20
    fill(cluster, "full", 50)
    cluster.delete("ns/full")
    cluster.wait("ns/full", "delete")
    for kind in KINDS:
        root, _, resource = kind.rpartition("/")
        assert cluster.request("GET", f"/{root}/namespaces/full/{resource}")["items"] == []


def test_finalizer_keeps_the_namespace_and_conditions_name_it(cluster: Cluster) -> None:
    cluster.load(CRD)
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": "held"}})
    held = {"metadata": {"name": "w", "finalizers": ["example.com/hold"]}}
    cluster.request(
        "POST",
        "/apis/example.com/v1/namespaces/held/widgets",
        {"apiVersion": "example.com/v1", "kind": "Widget", **held},
    )
    cluster.delete("ns/held")
    namespace = cluster.wait("ns/held", "NamespaceFinalizersRemaining")
    said = {held["type"]: (held["status"], held["message"]) for held in namespace["status"]["conditions"]}
    assert said == {
        "NamespaceDeletionDiscoveryFailure": ("False", "All resources successfully discovered"),
        "NamespaceDeletionGroupVersionParsingFailure": ("False", "All legacy kube types successfully parsed"),
        "NamespaceDeletionContentFailure": (
            "False",
            "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": (
            "True",
            "Some resources are remaining: widgets.example.com has 1 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "True",
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
        ),
    }
    with pytest.raises(Refused, match="because it is being terminated"):
        cluster.load(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}}, namespace="held"
        )
    path = "/apis/example.com/v1/namespaces/held/widgets/w"
    cluster.request("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
    cluster.wait("ns/held", "delete")


def test_empty_namespace_with_finalizers_of_its_own_shows_conditions(cluster: Cluster) -> None:
    cluster.request(
        "POST", "/api/v1/namespaces", {"metadata": {"name": "own", "finalizers": ["example.com/hold"]}}
    )
    cluster.delete("ns/own")
    namespace = cluster.wait("ns/own", lambda found: not found["spec"].get("finalizers"))
    assert namespace["spec"] == {}
    conditions = {
        found["type"]: (found["status"], found["reason"]) for found in namespace["status"]["conditions"]
    }
    assert conditions == {
        "NamespaceDeletionDiscoveryFailure": ("False", "ResourcesDiscovered"),
        "NamespaceDeletionGroupVersionParsingFailure": ("False", "ParsedGroupVersions"),
        "NamespaceDeletionContentFailure": ("False", "ContentDeleted"),
        "NamespaceContentRemaining": ("False", "ContentRemoved"),
        "NamespaceFinalizersRemaining": ("False", "ContentHasNoFinalizers"),
    }
    path = "/api/v1/namespaces/own"
    cluster.request("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
    cluster.wait("ns/own", "delete")


def test_pods_are_deleted_before_other_content(cluster: Cluster) -> None:
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": "busy"}})
    cluster.wait("sa/default", lambda account: True, namespace="busy")
    cluster.request("POST", "/api/v1/nodes", {"metadata": {"name": "node"}})
    pod = {"metadata": {"name": "p"}, "spec": {**POD, "nodeName": "node"}}
    cluster.request("POST", "/api/v1/namespaces/busy/pods", pod)
    cluster.load({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}}, namespace="busy")
    cluster.delete("ns/busy")
    cluster.wait("pod/p", lambda found: "deletionTimestamp" in found["metadata"], namespace="busy")
    assert cluster.get("cm/kept", "busy")
    cluster.delete("pod/p", "busy", gracePeriodSeconds=0)
    cluster.wait("ns/busy", "delete")


def serve(directory: Path) -> tuple[subprocess.Popen[str], str]:
    """Runs `kubist serve` as a separate process and returns its URL."""
    command = [sys.executable, "-m", "kubist", "serve", "--data-dir", str(directory), "--secure-port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().split()[-1]


def ask(url: str, directory: Path, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    context = ssl.create_default_context(cafile=str(directory / "pki/ca.crt"))
    context.load_cert_chain(directory / "pki/admin.crt", directory / "pki/admin.key")
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(
        url + path, data=data, method=method, headers={"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_namespace_deletion_continues_after_kill_and_restart(tmp_path: Path) -> None:
    process, url = serve(tmp_path)
    try:
        assert ask(url, tmp_path, "POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})[0] == 201
        for n in range(300):
            body = {"metadata": {"name": f"c{n}"}}
            assert ask(url, tmp_path, "POST", "/api/v1/namespaces/n/configmaps", body)[0] == 201
        held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
        assert ask(url, tmp_path, "POST", "/api/v1/namespaces/n/secrets", held)[0] == 201
        assert ask(url, tmp_path, "DELETE", "/api/v1/namespaces/n")[0] == 200
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    process, url = serve(tmp_path)
    try:
        path = "/api/v1/namespaces/n"
        assert ask(url, tmp_path, "GET", path)[1]["status"]["phase"] == "Terminating"
        held["metadata"]["finalizers"] = []
        assert ask(url, tmp_path, "PUT", f"{path}/secrets/held", held)[0] == 200
        wait_for(lambda: ask(url, tmp_path, "GET", path)[0] == 404, pause=0.02)
    finally:
        process.terminate()
        process.communicate()
