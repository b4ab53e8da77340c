"""Workload objects for tests, and kubectl on a cluster."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

import pytest

from kubist.meta.object import Object
from kubist.testing import Cluster

KUBECTL = os.environ.get("KUBECTL") or shutil.which("kubectl")
needs_kubectl = pytest.mark.skipif(not KUBECTL, reason="kubectl is not installed")
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
    assert KUBECTL
    command = [KUBECTL, "--kubeconfig", str(cluster.kubeconfig), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout
