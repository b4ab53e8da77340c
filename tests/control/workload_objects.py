"""Workload objects for tests, and kubectl on a cluster."""

from __future__ import annotations

import subprocess
from typing import Any

from kubist.model.meta.object import Object
from kubist.testing import Cluster
from tests import programs

needs_kubectl = programs.needs("kubectl")
LABELS = {"app": "web"}


def template(image: str = "nginx:1", **spec: Any) -> Object:
    return {
        "metadata": {"labels": dict(LABELS)},
        "spec": {"containers": [{"name": "c", "image": image}], **spec},
    }


def workload(kind: str, **spec: Any) -> Object:
    body = {"selector": {"matchLabels": dict(LABELS)}, "template": template(), **spec}
    if kind == "StatefulSet":
        body.setdefault("serviceName", "web")
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": body}


def run_kubectl(cluster: Cluster, *arguments: str) -> str:
    """Output of kubectl, which must succeed."""
    command = ["kubectl", "--kubeconfig", str(cluster.kubeconfig), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout
