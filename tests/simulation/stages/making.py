"""Stages for tests, and functions that read the server."""

from __future__ import annotations

from typing import Any

from kubist.model.meta.object import Object
from kubist.testing import Cluster

CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "stages.kwok.x-k8s.io"},
    "spec": {
        "group": "kwok.x-k8s.io",
        "names": {"kind": "Stage", "plural": "stages", "singular": "stage", "listKind": "StageList"},
        "scope": "Cluster",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}


def stage(name: str, kind: str = "Pod", api_group: str = "v1", **spec: Any) -> dict[str, Any]:
    """A Stage. Without a selector it selects all objects of the kind."""
    spec.setdefault("selector", {})
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {"resourceRef": {"apiGroup": api_group, "kind": kind}, **spec},
    }


def needs(key: str, operator: str, *values: str) -> dict[str, Any]:
    """Expression of a selector in the form that KWOK's own Stages use."""
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


STAGES = "/apis/kwok.x-k8s.io/v1alpha1/stages"

IS_NEW = needs(".status.podIP", "DoesNotExist")
IS_KEPT = needs(".metadata.deletionTimestamp", "DoesNotExist")
IS_DELETED = needs(".metadata.deletionTimestamp", "Exists")
RUNNING = """
{{ $now := Now }}
conditions:
- {type: Ready, status: "True", lastTransitionTime: {{ $now | Quote }}}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  restartCount: 0
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ end }}
podIP: {{ PodIPWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace | Quote }}
phase: Running
reason: Staged
"""


def pod(name: str, **metadata: Any) -> Object:
    made = {"name": name, "labels": {"test": name}, **metadata}
    spec = {"containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": spec}


def selector(name: str, *expressions: Object) -> Object:
    return {"matchLabels": {"test": name}, "matchExpressions": list(expressions)}


def status_of(cluster: Cluster, name: str) -> Object:
    """Status of a pod; empty if it does not exist."""
    found = [held["status"] for held in cluster.list("pods") if held["metadata"]["name"] == name]
    return found[0] if found else {}


def events(cluster: Cluster, name: str) -> list[tuple[str, str, str]]:
    found = [event for event in cluster.list("events") if event["involvedObject"]["name"] == name]
    return [(event["type"], event["reason"], event["message"]) for event in found]


def config_map(cluster: Cluster, name: str) -> Object:
    found: Object = cluster.request("GET", f"/api/v1/namespaces/default/configmaps/{name}")
    return found


def new_config_map(name: str, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"test": name}, **metadata},
    }
