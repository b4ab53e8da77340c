"""Server with simulated pods for the tests of their subresources."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubist.model.meta.object import Object
from kubist.testing import Cluster, Host
from tests.waiting import wait_for

MakePod = Callable[..., str]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Cluster that all tests of this folder share. Each test uses pods of its own."""
    host = Host()
    shared = host.cluster(workloads=True)
    yield shared
    shared.stop()
    host.stop()


@pytest.fixture
def make_pod(cluster: Cluster) -> MakePod:
    """Creates a pod and waits until it runs. Returns its name."""

    def make(annotations: dict[str, str] | None = None, **container: Any) -> str:
        name = f"pod-{os.urandom(4).hex()}"
        metadata = {"name": name, "labels": {"app": name}, "annotations": annotations or {}}
        containers = [{"name": "main", "image": "app", **container}]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}
        cluster.request("POST", "/api/v1/namespaces/default/pods", pod)
        wait_for(lambda: runs(cluster.get(f"pod/{name}")))
        return name

    return make


def runs(pod: Object) -> bool:
    held = pod["status"].get("containerStatuses") or [{}]
    return "running" in (held[0].get("state") or {}) and pod["status"].get("phase") == "Running"


class Kubectl:
    """kubectl with the kubeconfig of the cluster. `environment` has further variables."""

    def __init__(self, cluster: Cluster, **environment: str) -> None:
        proxies = [name for name in os.environ if name.lower().endswith("_proxy")]
        base = {name: value for name, value in os.environ.items() if name not in proxies}
        home = Path(cluster.kubeconfig).parent
        self.environment = {**base, "KUBECONFIG": str(cluster.kubeconfig), "HOME": str(home), **environment}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            ["kubectl", *arguments], env=self.environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )

    def __call__(self, *arguments: str, given: str = "", code: int = 0) -> str:
        done = subprocess.run(
            ["kubectl", *arguments],
            env=self.environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
        return done.stdout + done.stderr
