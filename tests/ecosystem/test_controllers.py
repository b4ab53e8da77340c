"""Controllers of other projects, built from their Go modules and run as processes beside the server."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ecosystem.installation import OUTPUT, build, copy_sources, go_module, go_program, require
from tests.ecosystem.servers import Server, unique
from tests.ecosystem.table import exercises
from tests.waiting import wait_for

ROLLOUTS = ("github.com/argoproj/argo-rollouts", "v1.10.1")
DESCHEDULER = ("sigs.k8s.io/descheduler", "v0.36.0")
KWOK = ("sigs.k8s.io/kwok", "v0.8.0")
CERT_MANAGER = ("github.com/cert-manager/cert-manager", "v1.21.2")
SECONDS = 90


class Namespace:
    """Namespace of one test, used through kubectl."""

    def __init__(self, server: Server, name: str) -> None:
        require("kubectl")
        self.server = server
        self.name = unique(name)
        self.kubectl("create", "namespace", self.name)

    def kubectl(self, *arguments: str | Path) -> str:
        return self.server.run("kubectl", "--namespace", self.name, *arguments)

    def apply(self, *objects: dict[str, Any]) -> None:
        manifest = self.server.home / f"{unique('manifest')}.yaml"
        manifest.write_text(yaml.safe_dump_all(objects))
        self.kubectl("apply", "--filename", manifest)

    def get(self, kind: str, name: str) -> Any:
        return json.loads(self.kubectl("get", kind, name, "--output=json"))


@contextmanager
def running(server: Server, program: Path, *flags: str) -> Iterator[Path]:
    """Runs a controller. Gives its log, which a failure shows."""
    log = server.home / f"{unique('controller')}.log"
    with log.open("wb") as output:
        environment = {**os.environ, **server.environment, "HOME": str(server.home)}
        process = subprocess.Popen(
            [program, *flags], cwd=server.home, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield log
    except AssertionError as error:
        raise AssertionError(f"{error}\n{log.read_text()[-OUTPUT:]}") from None
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def deployment(name: str, replicas: int) -> dict[str, Any]:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": f"{name}:1"}]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


@exercises(
    "Argo Rollouts",
    ROLLOUTS[1],
    "canary with steps: new ReplicaSets, pause, promotion",
)
def test_argo_rollouts_runs_a_canary(server: Server) -> None:
    program = go_program(*ROLLOUTS, "./cmd/rollouts-controller")
    space = Namespace(server, "rollouts")
    server.run("kubectl", "apply", "--server-side", "--kustomize", go_module(*ROLLOUTS) / "manifests/crds")
    rollout = {**deployment("web", 4), "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
    steps: list[dict[str, Any]] = [{"setWeight": 50}, {"pause": {}}]
    rollout["spec"]["strategy"] = {"canary": {"steps": steps}}
    space.apply(rollout)
    flags = (
        "--namespaced",
        "--namespace",
        space.name,
        "--metricsport=0",
        "--healthzPort=0",
        "--leader-elect=false",
    )

    def phase() -> str:
        status = space.get("rollout", "web").get("status", {})
        return f"{status.get('phase')} {status.get('updatedReplicas', 0)} of {status.get('readyReplicas', 0)}"

    with running(server, program, *flags):
        wait_for(lambda: phase() == "Healthy 4 of 4", SECONDS)
        image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "web:2"}]
        space.kubectl("patch", "rollout", "web", "--type=json", "--patch", json.dumps(image))
        wait_for(lambda: phase() == "Paused 2 of 4", SECONDS)
        sets = json.loads(space.kubectl("get", "replicasets", "--output=json"))["items"]
        assert sorted(item["spec"]["replicas"] for item in sets) == [2, 2]
        promoted = {"status": {"pauseConditions": None, "currentStepIndex": 2}}
        promote = ("--subresource=status", "--type=merge", "--patch", json.dumps(promoted))
        space.kubectl("patch", "rollout", "web", *promote)
        wait_for(lambda: phase() == "Healthy 4 of 4", SECONDS)
        rolled = space.get("rollout", "web")
        assert rolled["status"]["stableRS"] == rolled["status"]["currentPodHash"]


@exercises("descheduler", DESCHEDULER[1], "evicts old pods, within a PodDisruptionBudget")
def test_descheduler_evicts_pods(server: Server) -> None:
    program = go_program(*DESCHEDULER, "./cmd/descheduler")
    space = Namespace(server, "descheduler")
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "guarded"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "guarded"}}},
    }
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": unique("second")}}
    space.apply(deployment("free", 2), deployment("guarded", 2), budget, node)
    for name in ("free", "guarded"):
        space.kubectl("rollout", "status", "deployment", name, "--timeout=60s")
    wait_for(lambda: space.get("pdb", "guarded")["status"]["currentHealthy"] == 2, SECONDS)
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "a", "message": ""}]}}
    name = node["metadata"]["name"]  # type: ignore[index]
    space.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "--patch", json.dumps(ready))
    lifetime = {
        "name": "PodLifeTime",
        "args": {"maxPodLifeTimeSeconds": 1, "namespaces": {"include": [space.name]}},
    }
    profile = {
        "name": "old",
        "pluginConfig": [lifetime],
        "plugins": {"deschedule": {"enabled": ["PodLifeTime"]}},
    }
    policy = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "profiles": [profile]}
    file = server.home / "policy.yaml"
    file.write_text(yaml.safe_dump(policy))

    def pods(app: str) -> set[str]:
        return set(space.kubectl("get", "pods", "--selector", f"app={app}", "--output=name").split())

    free, guarded = pods("free"), pods("guarded")
    flags = ("--kubeconfig", str(server.kubeconfig), "--policy-config-file", str(file), "--secure-port=0")
    with running(server, program, *flags, "--descheduling-interval=2s"):
        wait_for(lambda: not free & pods("free"), SECONDS)
        assert pods("guarded") == guarded


@exercises("kwok", KWOK[1], "nodes with leases, pods from Pending to their deletion, by Stages of its CRD")
def test_kwok_runs_nodes_and_pods(own_server: Server) -> None:
    program, sources = go_program(*KWOK, "./cmd/kwok"), go_module(*KWOK)
    space = Namespace(own_server, "kwok")
    for folder in ("crd", "stage/fast"):
        own_server.run("kubectl", "apply", "--server-side", "--kustomize", sources / "kustomize" / folder)
        if folder == "crd":
            own_server.run("kubectl", "wait", "--for=condition=Established", "crd", "--all")
    names = ["fake-1", "fake-2"]
    taint = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
    for name in names:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"taints": [taint]}}
        container = {"name": "main", "image": "web:1"}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"on-{name}"},
            "spec": {"nodeName": name, "containers": [container]},
        }
        space.apply(node, pod)
    flags = ("--manage-all-nodes", "--enable-crds=Stage", "--kubeconfig", str(own_server.kubeconfig))

    def lease(name: str) -> Any:
        held = own_server.run("kubectl", "get", "leases", "--namespace=kube-node-lease", "--output=json")
        return {
            item["metadata"]["name"]: item["spec"]["renewTime"] for item in json.loads(held)["items"]
        }.get(name)

    with running(own_server, program, *flags, "--node-lease-duration-seconds=4"):
        for name in names:
            space.kubectl("wait", "--for=condition=Ready", f"node/{name}", f"--timeout={SECONDS}s")
            space.kubectl("wait", "--for=condition=Ready", f"pod/on-{name}", f"--timeout={SECONDS}s")
            assert space.get("pod", f"on-{name}")["status"]["phase"] == "Running"
        wait_for(lambda: lease("fake-1") is not None, SECONDS)
        first = lease("fake-1")
        wait_for(lambda: lease("fake-1") != first, SECONDS)
        space.kubectl("delete", "pod", "on-fake-1", f"--timeout={SECONDS}s")
        left = space.kubectl("get", "pods", "--output=name").split()
        assert left == ["pod/on-fake-2"]


def cert_manager_object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "cert-manager.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


@exercises(
    "cert-manager",
    CERT_MANAGER[1],
    "its controllers of issuers and certificates: self-signed CA, issue, change, re-issue of a deleted Secret",
)
def test_cert_manager_issues_certificates(server: Server) -> None:
    sources = copy_sources("certmanager")
    build(["go", "build", "-mod=mod", "-o", "certmanager", "."], sources)
    space = Namespace(server, "certmanager")
    server.run("kubectl", "apply", "--server-side", "--filename", go_module(*CERT_MANAGER) / "deploy/crds")
    server.run("kubectl", "wait", "--for=condition=Established", "crd", "issuers.cert-manager.io")
    key = {"algorithm": "ECDSA", "size": 256}
    authority = {
        "isCA": True,
        "commonName": "ca",
        "secretName": "ca",
        "issuerRef": {"name": "root"},
        "privateKey": key,
    }
    web = {
        "dnsNames": ["web.test"],
        "secretName": "web",
        "issuerRef": {"name": "ca"},
        "privateKey": key,
    }
    space.apply(
        cert_manager_object("Issuer", "root", {"selfSigned": {}}),
        cert_manager_object("Certificate", "ca", authority),
        cert_manager_object("Issuer", "ca", {"ca": {"secretName": "ca"}}),
        cert_manager_object("Certificate", "web", web),
    )

    def issued() -> str:
        """Certificate in the Secret; empty if there is none."""
        found = json.loads(space.kubectl("get", "secrets", "--output=json"))["items"]
        names = {item["metadata"]["name"]: item["data"].get("tls.crt", "") for item in found}
        return str(names.get("web", ""))

    def revision() -> int:
        status = space.get("certificate", "web")["status"]
        is_ready = {"Ready": "True"}.items() <= {c["type"]: c["status"] for c in status["conditions"]}.items()
        return int(status["revision"]) if is_ready else 0

    with running(server, sources / "certmanager", space.name):
        space.kubectl("wait", "--for=condition=Ready", "certificate", "--all", f"--timeout={SECONDS}s")
        first = issued()
        assert space.get("secret", "web")["data"]["ca.crt"] == space.get("secret", "ca")["data"]["tls.crt"]
        space.apply(cert_manager_object("Certificate", "web", web | {"dnsNames": ["web.test", "www.test"]}))
        wait_for(lambda: revision() == 2, SECONDS)
        second = issued()
        assert first and second and first != second
        space.kubectl("delete", "secret", "web")
        wait_for(lambda: issued() not in ("", first, second), SECONDS)


@pytest.fixture(autouse=True, scope="module")
def go_toolchain() -> None:
    require("go")
