"""Clients and frameworks of Python, in pinned versions and an environment of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.conftest import CRD
from tests.ecosystem.installation import build, copy_sources
from tests.ecosystem.servers import Server, unique
from tests.ecosystem.table import exercises
from tests.waiting import wait_for

OPERATOR = Path(__file__).parents[1] / "clients/operator_process.py"
LINES = Path(__file__).with_name("python").joinpath("requirements.txt").read_text().split()
VERSIONS = dict(line.split("==") for line in LINES)


@pytest.fixture(scope="module")
def python() -> Path:
    """Interpreter of the environment. Its programs are beside it."""
    sources = copy_sources("python")
    interpreter = sources / "environment/bin/python"
    if not interpreter.exists():
        build([sys.executable, "-m", "venv", "environment"], sources)
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"]
    build([interpreter, *install], sources)
    return interpreter


def use(library: str, python: Path, server: Server) -> None:
    program = python.parents[2] / f"use_{library}.py"
    assert server.run(python, program, unique(library.replace("_", "-"))).endswith("passed\n")


@exercises(
    "kubernetes",
    VERSIONS["kubernetes"],
    "informer, dynamic client, server-side apply, logs, exec and port-forward of a simulated pod",
)
def test_kubernetes(python: Path, server: Server) -> None:
    use("kubernetes", python, server)


@exercises("kubernetes_asyncio", VERSIONS["kubernetes_asyncio"], "watch, pages, dynamic client, apply")
def test_kubernetes_asyncio(python: Path, server: Server) -> None:
    use("kubernetes_asyncio", python, server)


@exercises("pykube-ng", VERSIONS["pykube-ng"], "patch, watch, table, scale and rollout of a Deployment")
def test_pykube(python: Path, server: Server) -> None:
    use("pykube", python, server)


@exercises("lightkube", VERSIONS["lightkube"], "apply, wait, scale subresource, watch, chunked list")
def test_lightkube(python: Path, server: Server) -> None:
    use("lightkube", python, server)


@exercises(
    "kr8s",
    VERSIONS["kr8s"],
    "wait, pods of a Deployment, logs, exec, port-forward, scale, JSON patch, watch, new classes",
)
def test_kr8s(python: Path, server: Server) -> None:
    use("kr8s", python, server)


@exercises("kopf", VERSIONS["kopf"], "handlers of creation, update and deletion, finalizer, status")
def test_kopf(python: Path, server: Server, tmp_path: Path) -> None:
    namespace = unique("kopf")
    (tmp_path / "crd.json").write_text(json.dumps(CRD))
    widget = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {"size": 1},
    }
    (tmp_path / "widget.json").write_text(json.dumps(widget))

    def kubectl(*arguments: str | Path) -> str:
        return server.run("kubectl", "--namespace", namespace, *arguments)

    def seen() -> str:
        return kubectl("get", "widget", "w", "--output=jsonpath={.status.seen}")

    kubectl("create", "namespace", namespace)
    kubectl("apply", "-f", tmp_path / "crd.json")
    kubectl("wait", "--for=condition=Established", "crd/widgets.example.com")
    command: list[str | Path] = [
        python,
        "-m",
        "kopf",
        "run",
        "--standalone",
        "--namespace",
        namespace,
        OPERATOR,
    ]
    environment = {**os.environ, **server.environment}
    log = tmp_path / "log"
    with log.open("wb") as output:
        operator = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        kubectl("create", "-f", tmp_path / "widget.json")
        wait_for(lambda: seen() == "1", 90)
        kubectl("patch", "widget", "w", "--type=merge", '--patch={"spec":{"size":2}}')
        wait_for(lambda: seen() == "2", 90)
        kubectl("delete", "widget", "w", "--timeout=90s")
        assert "saying goodbye to w" in log.read_text()
    finally:
        operator.kill()
        operator.wait()
