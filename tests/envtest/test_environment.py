"""Control planes that are started from the assets."""

from __future__ import annotations

import re
import signal
import socket
import subprocess

import pytest

from tests import programs
from tests.envtest.conftest import ControlPlane, NewControlPlane, is_free, stop
from tests.storage.etcd_server import EtcdServer
from tests.waiting import wait_for

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
CONFIGMAP = {"metadata": {"name": "a"}}


def started(plane: ControlPlane) -> ControlPlane:
    plane.start_etcd()
    plane.start_apiserver()
    plane.wait_until_ready()
    return plane


def test_both_processes_may_start_at_once(control_plane: NewControlPlane) -> None:
    plane = control_plane()
    plane.start_apiserver()
    plane.start_etcd()
    plane.processes.reverse()
    plane.wait_until_ready()
    assert plane.ask("POST", CONFIGMAPS, CONFIGMAP)[0] == 201


def test_first_connection_that_is_accepted_is_answered_when_the_server_is_ready(
    control_plane: NewControlPlane,
) -> None:
    plane = control_plane()
    plane.start_etcd()
    plane.start_apiserver()
    answers: list[int] = []

    def answered() -> bool:
        answers.append(plane.ask("GET", "/readyz")[0])
        return answers[-1] != 0

    wait_for(answered, 60)
    assert answers[-1] == 200


def test_taken_port_prints_one_line_error(control_plane: NewControlPlane) -> None:
    plane = control_plane()
    plane.start_etcd()
    with socket.create_server(("127.0.0.1", plane.port)):
        assert plane.start_apiserver().wait(60) == 1
    (line,) = plane.log.read_text().splitlines()
    assert line.startswith(f"kubist: port {plane.port} on 127.0.0.1 is taken: ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_objects_are_in_memory_and_nothing_is_left_behind(
    control_plane: NewControlPlane, number: int
) -> None:
    plane = started(control_plane())
    assert plane.ask("POST", CONFIGMAPS, CONFIGMAP)[0] == 201
    files = sorted(path.name for path in plane.certificates.iterdir())
    apiserver, etcd = plane.processes[1], plane.processes[0]
    code = stop(apiserver, number)
    stop(etcd, number)
    assert code == (0 if number == signal.SIGTERM else -signal.SIGKILL)
    assert is_free(plane.port) and is_free(plane.etcd_port)
    assert sorted(path.name for path in plane.certificates.iterdir()) == files
    assert sorted(path.name for path in plane.home.iterdir()) == ["certificates", "log"]


def test_kube_apiserver_survives_the_stand_in(control_plane: NewControlPlane) -> None:
    plane = started(control_plane())
    stop(plane.processes[0], signal.SIGKILL)
    assert plane.ask("POST", CONFIGMAPS, CONFIGMAP)[0] == 201
    assert plane.ask("GET", "/readyz")[0] == 200


def test_flags_of_fabric8_are_accepted(control_plane: NewControlPlane) -> None:
    """kube-api-test separates values by spaces, repeats flags, and gives a path as a second issuer."""
    plane = control_plane()
    where = plane.certificates
    peer = "http://localhost:1"
    plane.run(
        "etcd",
        *("-data-dir", str(plane.home), "-wal-dir", str(plane.home)),
        *("--listen-client-urls", f"http://0.0.0.0:{plane.etcd_port}"),
        *("--advertise-client-urls", f"http://0.0.0.0:{plane.etcd_port}"),
        *("--initial-cluster", f"default={peer}", "--initial-advertise-peer-urls", peer),
        *("--listen-peer-urls", peer),
    )
    plane.run(
        "kube-apiserver",
        *("--cert-dir", str(where), "--secure-port", str(plane.port)),
        *("--etcd-servers", f"http://0.0.0.0:{plane.etcd_port}", "--authorization-mode", "RBAC"),
        *("--service-account-issuer", "https://localhost"),
        *("--service-account-signing-key-file", str(where / "sa.key")),
        *("--service-account-signing-key-file", str(where / "sa.key")),
        *(
            "--service-account-key-file",
            str(where / "sa.crt"),
            "--service-account-issuer",
            str(where / "sa.crt"),
        ),
        *("--disable-admission-plugins", "ServiceAccount", "--client-ca-file", str(where / "users.crt")),
        *("--service-cluster-ip-range", "10.0.0.0/24", "--allow-privileged"),
    )
    plane.wait_until_ready()
    assert plane.ask("GET", "/api/v1/namespaces/default")[0] == 200


def test_namespace_stays_terminating_without_controllers(control_plane: NewControlPlane) -> None:
    plane = started(control_plane())
    assert plane.ask("POST", "/api/v1/namespaces", CONFIGMAP)[0] == 201
    assert plane.ask("DELETE", "/api/v1/namespaces/a")[0] == 200
    assert plane.ask("GET", "/api/v1/namespaces/a")[1]["status"]["phase"] == "Terminating"


def test_controllers_delete_namespaces(control_plane: NewControlPlane) -> None:
    plane = started(control_plane(KUBIST_CONTROLLERS="*"))
    assert plane.ask("POST", "/api/v1/namespaces", CONFIGMAP)[0] == 201
    assert plane.ask("POST", "/api/v1/namespaces/a/configmaps", CONFIGMAP)[0] == 201
    assert plane.ask("DELETE", "/api/v1/namespaces/a")[0] == 200
    wait_for(lambda: plane.ask("GET", "/api/v1/namespaces/a")[0] == 404)


def test_workloads_run_pods(control_plane: NewControlPlane) -> None:
    plane = started(control_plane(KUBIST_WORKLOADS="1"))
    spec = {"containers": [{"name": "a", "image": "a"}], "automountServiceAccountToken": False}
    pods = "/api/v1/namespaces/default/pods"
    assert plane.ask("POST", pods, {"metadata": {"name": "a"}, "spec": spec})[0] == 201
    wait_for(lambda: plane.ask("GET", f"{pods}/a")[1]["status"]["phase"] == "Running")


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"KUBIST_WORKLOADS": "maybe"}, "KUBIST_WORKLOADS is 'maybe': it must be 1 or 0"),
        ({"KUBIST_CONTROLLERS": "nothing-like-it"}, "KUBIST_CONTROLLERS: .*nothing-like-it"),
    ],
)
def test_wrong_variables_end_the_start(
    control_plane: NewControlPlane, variables: dict[str, str], why: str
) -> None:
    plane = control_plane(**variables)
    result = subprocess.run(
        [str(plane.assets / "kube-apiserver"), f"--cert-dir={plane.certificates}"],
        capture_output=True,
        text=True,
        env=plane.environment,
        timeout=30,
    )
    assert result.returncode == 1
    assert [line for line in result.stderr.splitlines() if re.search(why, line)]


@programs.needs("etcd")
def test_real_etcd_still_works(control_plane: NewControlPlane) -> None:
    plane = control_plane()
    etcd = EtcdServer(plane.home)
    etcd.start()
    try:
        etcd.wait()
        plane.etcd_port = int(etcd.endpoint.rpartition(":")[2])
        plane.start_apiserver()
        plane.wait_until_ready()
        assert plane.ask("POST", CONFIGMAPS, CONFIGMAP)[0] == 201
        stop(plane.processes[-1])
        plane.start_apiserver()
        plane.wait_until_ready()
        assert plane.ask("GET", f"{CONFIGMAPS}/a")[0] == 200
    finally:
        etcd.stop()
