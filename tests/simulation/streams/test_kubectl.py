"""kubectl logs, exec, cp, attach, port-forward and top with simulated pods, over WebSocket and SPDY."""

from __future__ import annotations

import os
import socket
import urllib.request
from pathlib import Path

import pytest

from kubist.testing import Cluster
from tests import programs
from tests.simulation.streams.conftest import Kubectl, MakePod
from tests.waiting import wait_for

pytestmark = programs.needs("kubectl")

TRANSPORTS = {
    "websocket": {},
    "spdy": {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"},
}


@pytest.fixture(params=list(TRANSPORTS))
def kubectl(request: pytest.FixtureRequest, cluster: Cluster) -> Kubectl:
    return Kubectl(cluster, **TRANSPORTS[request.param])


def test_logs(cluster: Cluster, make_pod: MakePod) -> None:
    kubectl = Kubectl(cluster)
    name = make_pod({"kubist.io/logs": "one\ntwo\nthree"})
    assert kubectl("logs", name) == "one\ntwo\nthree\n"
    (line,) = kubectl("logs", name, "-c", "main", "--tail=1", "--timestamps", "--since=1h").splitlines()
    assert line.endswith(".002000000Z three")
    assert "previous terminated container" in kubectl("logs", name, "--previous", code=1)
    with kubectl.start("logs", "-f", name) as follower:
        assert follower.stdout is not None
        assert [follower.stdout.readline() for _ in range(3)] == ["one\n", "two\n", "three\n"]
        cluster.delete(f"pod/{name}", gracePeriodSeconds=0)
        assert follower.stdout.read() == ""
        assert follower.wait(30) == 0


def test_exec(kubectl: Kubectl, make_pod: MakePod) -> None:
    name = make_pod()
    assert kubectl("exec", name, "--", "echo", "hello") == "hello\n"
    assert "exit code 7" in kubectl("exec", name, "--", "sh", "-c", "exit 7", code=7)
    assert "is simulated" in kubectl("exec", name, "--", "nginx", "-t", code=126)
    assert kubectl("exec", "-i", name, "--", "cat", given="from stdin") == "from stdin"
    shown = kubectl("attach", "-i", name, given="echo attached\n")
    assert "attached\n" in shown and "is simulated" in shown


def test_cp(kubectl: Kubectl, make_pod: MakePod, tmp_path: Path) -> None:
    name = make_pod()
    (tmp_path / "dir/sub").mkdir(parents=True)
    (tmp_path / "dir/sub/file").write_bytes(content := os.urandom(300_000))
    kubectl("cp", str(tmp_path / "dir"), f"{name}:/data")
    assert kubectl("exec", name, "--", "ls", "/data/sub") == "file\n"
    kubectl("cp", f"{name}:/data", str(tmp_path / "back"))
    assert (tmp_path / "back/sub/file").read_bytes() == content


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def test_port_forward(cluster: Cluster, kubectl: Kubectl, make_pod: MakePod) -> None:
    name, port = make_pod(), free_port()
    with kubectl.start("port-forward", f"pod/{name}", f"{port}:80", "--address=127.0.0.1") as forwarder:
        assert forwarder.stdout is not None
        assert forwarder.stdout.readline() == f"Forwarding from 127.0.0.1:{port} -> 80\n"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        for _ in range(3):
            with opener.open(f"http://127.0.0.1:{port}/", timeout=30) as response:
                assert "nothing runs behind port 80" in response.read().decode()
        cluster.delete(f"pod/{name}", gracePeriodSeconds=0)
        wait_for(lambda: forwarder.poll() is not None, 30)


def test_run_ends_with_its_interactive_shell(kubectl: Kubectl) -> None:
    name = f"interactive-{os.urandom(3).hex()}"
    options = ("--image=busybox", "--restart=Never", "-i", "--rm", "--quiet")
    shown = kubectl("run", name, *options, "--", "sh", given="echo talked\nexit 4\n", code=4)
    assert "talked\n" in shown


def test_debug_attaches_to_its_ephemeral_container(kubectl: Kubectl, make_pod: MakePod) -> None:
    name = make_pod()
    options = ("--image=busybox", "-i", "-c", "debugger", "--profile=general")
    assert "debugged\n" in kubectl("debug", name, *options, "--", "sh", given="echo debugged\nexit\n")
