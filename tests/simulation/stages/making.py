"""Stages for tests."""

from __future__ import annotations

from typing import Any

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
