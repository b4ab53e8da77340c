"""sample-apiserver: an extension API server on k8s.io/apiserver, with delegated authentication and authorization."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from kubist.base.http.tls.certificates import Authority, load_authority, new_authority, save
from tests.ecosystem.installation import CACHE, build, require
from tests.ecosystem.servers import Server
from tests.ecosystem.table import exercises
from tests.storage.etcd_server import EtcdServer, free_port
from tests.waiting import wait_for

VERSION = "v0.36.4"
GROUP = "wardle.example.com"
PATH = f"/apis/{GROUP}/v1alpha1"
FLUNDER = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Flunder", "metadata": {"name": "first"}}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "api", "namespace": "wardle"},
    "spec": {"type": "ExternalName", "externalName": "localhost"},
}


@pytest.fixture(scope="module")
def program() -> Path:
    """The program, built in a module of its own because its module cannot be installed."""
    require("go", "kubectl")
    directory = CACHE / f"sample-apiserver-{VERSION}"
    directory.mkdir(parents=True, exist_ok=True)
    found = directory / "sample-apiserver"
    if not found.exists():
        (directory / "go.mod").write_text("module example.com/extension\n\ngo 1.24\n")
        build(["go", "get", "-tool", f"k8s.io/sample-apiserver@{VERSION}"], directory)
        build(["go", "build", "-o", found, "k8s.io/sample-apiserver"], directory)
    return found


class Extension:
    """sample-apiserver on a real etcd, registered in a Kubist server."""

    def __init__(self, program: Path, server: Server, etcd: EtcdServer, authority: Authority) -> None:
        self.server = server
        save(authority.issue_server(["api.wardle.svc"]), server.home / "api.crt", server.home / "api.key")
        self.port = free_port()
        policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
        (server.home / "policy.json").write_text(json.dumps(policy))
        flags = {
            "etcd-servers": etcd.endpoint,
            "etcd-prefix": f"/{server.home.name}",
            "secure-port": str(self.port),
            "bind-address": "127.0.0.1",
            "tls-cert-file": str(server.home / "api.crt"),
            "tls-private-key-file": str(server.home / "api.key"),
            "audit-log-path": str(server.home / "audit.log"),
            "audit-policy-file": str(server.home / "policy.json"),
        }
        for name in ("", "authentication-", "authorization-"):
            flags[f"{name}kubeconfig"] = str(server.kubeconfig)
        command = [str(program), *(f"--{name}={value}" for name, value in flags.items())]
        with (server.home / "extension.log").open("wb") as log:
            environment = {**os.environ, **server.environment}
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)


@pytest.fixture
def extension(program: Path, own_server: Server, real_etcd: EtcdServer) -> Iterator[Extension]:
    authority = new_authority("extension")
    running = Extension(program, own_server, real_etcd, authority)
    bundle = base64.b64encode(authority.cert_pem).decode()
    spec = {
        "group": GROUP,
        "version": "v1alpha1",
        "groupPriorityMinimum": 1000,
        "versionPriority": 15,
        "service": {"namespace": "wardle", "name": "api", "port": running.port},
        "caBundle": bundle,
    }
    api_service = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"v1alpha1.{GROUP}"},
        "spec": spec,
    }
    own_server.run("kubectl", "create", "namespace", "wardle")
    apply(own_server, SERVICE, api_service)
    try:
        own_server.run(
            "kubectl", "wait", "--for=condition=Available", f"apiservice/v1alpha1.{GROUP}", "--timeout=60s"
        )
        yield running
    finally:
        running.stop()


def apply(server: Server, *objects: Mapping[str, object]) -> None:
    path = server.home / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    server.run("kubectl", "apply", "-f", path)


@exercises(
    "sample-apiserver",
    VERSION,
    "discovery, kubectl get --raw, create, watch and delete through the aggregator",
)
def test_resources_of_an_extension_server(extension: Extension) -> None:
    server = extension.server
    assert "flunders" in server.run("kubectl", "api-resources", f"--api-group={GROUP}")
    assert json.loads(server.run("kubectl", "get", "--raw", PATH))["resources"]
    with subprocess.Popen(
        ["kubectl", "get", "flunders", "--watch-only", "-o", "name"],
        env={**os.environ, **server.environment},
        stdout=subprocess.PIPE,
        text=True,
    ) as watch:
        assert watch.stdout is not None
        try:
            time.sleep(2)
            apply(server, FLUNDER)
            assert watch.stdout.readline() == f"flunder.{GROUP}/first\n"
        finally:
            watch.terminate()
    assert server.run("kubectl", "get", "flunders", "-o", "name").endswith(f"flunder.{GROUP}/first\n")
    server.run("kubectl", "delete", "flunder", "first")
    assert f"{GROUP}/first" not in server.run("kubectl", "get", "flunders", "-o", "name")


@exercises("sample-apiserver", VERSION, "users of the front proxy, authorization by SubjectAccessReview")
def test_extension_server_knows_and_authorizes_users(extension: Extension) -> None:
    server = extension.server
    apply(server, FLUNDER)
    as_jane = ["kubectl", "get", "flunders", "-o", "name", "--as=jane", "--as-group=tasters"]
    denied = subprocess.run(as_jane, env={**os.environ, **server.environment}, capture_output=True, text=True)
    assert denied.returncode and "Forbidden" in denied.stderr
    server.run(
        "kubectl", "create", "clusterrole", "taster", "--verb=get,list", f"--resource=flunders.{GROUP}"
    )
    server.run("kubectl", "create", "clusterrolebinding", "taster", "--clusterrole=taster", "--group=tasters")
    assert wait_for(allowed(server, as_jane), 30, pause=0.5) == f"flunder.{GROUP}/first\n"
    events = [json.loads(line) for line in (server.home / "audit.log").read_text().splitlines()]
    users = {event["user"]["username"] for event in events}
    assert "jane" in users and "system:anonymous" not in users


def allowed(server: Server, command: list[str]) -> Callable[[], str]:
    """Output of a command, empty while it is denied. The extension server caches denials for ten seconds."""

    def output() -> str:
        environment = {**os.environ, **server.environment}
        return subprocess.run(command, env=environment, capture_output=True, text=True).stdout

    return output


@exercises("sample-apiserver", VERSION, "renewed client certificate and new CA of the front proxy")
def test_renewed_front_proxy(extension: Extension) -> None:
    server = extension.server
    pki = server.home / "data/pki"
    authority = load_authority(pki / "front-proxy-ca.crt", pki / "front-proxy-ca.key")
    save(
        authority.issue_client("front-proxy-client"),
        pki / "front-proxy-client.crt",
        pki / "front-proxy-client.key",
    )
    time.sleep(1.5)
    server.run("kubectl", "get", "flunders")
    new = new_authority("front-proxy-ca")
    new.save(pki / "front-proxy-ca.crt", pki / "front-proxy-ca.key")
    trust = [
        "kubectl",
        "get",
        "configmap",
        "extension-apiserver-authentication",
        "-n",
        "kube-system",
        "-o",
        "json",
    ]
    wait_for(lambda: server.run(*trust).count("BEGIN CERTIFICATE") == 3)
    save(
        new.issue_client("front-proxy-client"), pki / "front-proxy-client.crt", pki / "front-proxy-client.key"
    )
    get = ["kubectl", "get", "--raw", f"{PATH}/flunders"]
    wait_for(allowed(server, get), 60, pause=0.5)
