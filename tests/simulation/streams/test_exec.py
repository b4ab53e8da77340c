"""exec and attach in simulated pods, over each protocol."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import websocket

from kubist.cluster.simulation.kubelet_api import remotecommand
from kubist.testing import Cluster
from kubist.testing.cluster import Refused
from tests.simulation.streams.conftest import MakePod
from tests.simulation.streams.test_shell import archive
from tests.simulation.streams.upgraded import (
    CODE_3,
    WANTED,
    ask,
    drain,
    hang_up,
    open_spdy,
    open_websocket,
    path,
    refusal,
    run,
)
from tests.waiting import wait_for


@pytest.fixture(scope="module")
def shared(cluster: Cluster) -> str:
    """Pod for tests that do not change it."""
    pod = {"metadata": {"name": "shared"}, "spec": {"containers": [{"name": "main", "image": "app"}]}}
    cluster.request("POST", "/api/v1/namespaces/default/pods", pod)
    cluster.wait("pod/shared", "Ready", timeout=30)
    return "shared"


def test_success_is_reported_in_the_error_channel(cluster: Cluster, shared: str) -> None:
    ended = run(cluster, shared, "echo", "hello")
    assert (ended.out, ended.err, ended.status) == ("hello\n", "", {"metadata": {}, "status": "Success"})


def test_first_message_of_version_5_leaves_clients_time_to_open_their_streams(
    cluster: Cluster, shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remotecommand, "FIRST_MESSAGE_SECONDS", 2.0)
    client = open_websocket(cluster, path(shared, "exec", command=["true"], stdout="1"), "v5.channel.k8s.io")
    client.settimeout(0.5)
    with pytest.raises(websocket.WebSocketTimeoutException):
        client.recv()
    client.settimeout(30)
    assert drain(client).status == {"metadata": {}, "status": "Success"}


def test_exit_code_is_reported_as_a_kubelet_does(cluster: Cluster, shared: str) -> None:
    ended = run(cluster, shared, "sh", "-c", "echo before; exit 3")
    assert (ended.out, ended.status) == ("before\n", CODE_3)


def test_unknown_command_says_that_the_pod_is_simulated(cluster: Cluster, shared: str) -> None:
    ended = run(cluster, shared, "python3", "-V")
    assert ended.code == 126
    assert (
        ended.err
        == 'kubist: pod default/shared is simulated: no image runs, and "python3" cannot be simulated\n'
    )


@pytest.mark.parametrize("protocol", ["v4.channel.k8s.io", "channel.k8s.io", ""])
def test_older_websocket_protocols(cluster: Cluster, shared: str, protocol: str) -> None:
    where = path(shared, "exec", command=["sh", "-c", "echo out; echo err >&2; exit 3"], **WANTED)
    client = open_websocket(cluster, where, *([protocol] if protocol else []))
    assert client.subprotocol == (protocol or None)
    ended = drain(client)
    assert (ended.out, ended.err) == ("out\n", "err\n")
    if protocol.startswith("v4"):
        assert ended.status == CODE_3
    else:
        assert ended.raw == CODE_3["message"]


def test_base64_protocol_uses_text_messages(cluster: Cluster, shared: str) -> None:
    where = path(shared, "exec", command=["cat"], stdin="1", stdout="1")
    client = open_websocket(cluster, where, "v4.base64.channel.k8s.io")
    assert client.recv_data() == (websocket.ABNF.OPCODE_TEXT, b"1")
    client.send(b"0" + base64.b64encode(b"ping"))
    assert client.recv_data() == (websocket.ABNF.OPCODE_TEXT, b"1" + base64.b64encode(b"ping"))
    client.send(b"0!!!")
    client.send(b"0" + base64.b64encode(b"pong"))
    assert client.recv_data() == (websocket.ABNF.OPCODE_TEXT, b"1" + base64.b64encode(b"pong"))
    hang_up(client)


def test_close_signal_ends_stdin(cluster: Cluster, shared: str) -> None:
    client = open_websocket(
        cluster, path(shared, "exec", command=["cat"], stdin="1", stdout="1"), "v5.channel.k8s.io"
    )
    client.send_binary(b"\0one ")
    client.send_binary(b"\0two")
    client.send_binary(b"\xff\0")
    ended = drain(client)
    assert (ended.out, ended.code) == ("one two", 0)


def test_unsupported_subprotocol_is_refused(cluster: Cluster, shared: str) -> None:
    where = path(shared, "exec", command=["true"], **WANTED)
    assert refusal(cluster, where, "v9.channel.k8s.io") == (403, "")


def test_spdy_streams(cluster: Cluster, shared: str) -> None:
    where = path(shared, "exec", command=["sh"], stdin="1", **WANTED)
    socket, client = open_spdy(cluster, where, "v4.channel.k8s.io")
    with socket:
        error, stdin = client.open(streamType="error"), client.open(streamType="stdin")
        stdout, stderr = client.open(streamType="stdout"), client.open(streamType="stderr")
        client.send(stdin, b"echo out; echo err >&2; exit 3\n", fin=True)
        client.read_until_closed()
    assert client.replied == {error, stdin, stdout, stderr}
    assert (client.data[stdout], client.data[stderr]) == (b"out\n", b"err\n")
    assert json.loads(client.data[error]) == CODE_3
    assert {error, stdout, stderr} <= client.finished


def test_spdy_protocol_before_version_4_sends_the_message(cluster: Cluster, shared: str) -> None:
    where = path(shared, "exec", command=["false"], stdout="1")
    socket, client = open_spdy(cluster, where, "v2.channel.k8s.io")
    with socket:
        error, _ = client.open(streamType="error"), client.open(streamType="stdout")
        client.read_until_closed()
    assert client.data[error].endswith(b"exit code 1")


def test_spdy_client_must_open_its_streams_in_time(
    cluster: Cluster, shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remotecommand, "CREATION_SECONDS", 0.05)
    socket, client = open_spdy(cluster, path(shared, "exec", command=["true"], **WANTED), "v4.channel.k8s.io")
    with socket:
        client.open(streamType="error")
        client.read_until_closed()
    assert client.closed


def test_spdy_violation_ends_the_connection(cluster: Cluster, shared: str) -> None:
    socket, client = open_spdy(cluster, path(shared, "exec", command=["true"], **WANTED), "v4.channel.k8s.io")
    with socket:
        client.control(1, b"", version=2)
        client.read_until_closed()
    assert client.closed


def test_spdy_protocols_are_negotiated(cluster: Cluster, shared: str) -> None:
    upgrade = ("Connection: Upgrade", "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v9.channel.k8s.io")
    socket, head = ask(
        cluster, path(shared, "exec", command=["true"], **WANTED), *upgrade, "Content-Length: 0"
    )
    with socket:
        assert head.startswith(b"HTTP/1.1 403 ")
        assert b"X-Accepted-Stream-Protocol-Versions: v4.channel.k8s.io\r\n" in head


@pytest.mark.parametrize("subresource", ["exec", "attach", "portforward"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_request_without_upgrade_is_rejected(
    cluster: Cluster, shared: str, subresource: str, method: str
) -> None:
    socket, head = ask(cluster, path(shared, subresource, **WANTED), "Content-Length: 0", method=method)
    with socket:
        assert head.startswith(b"HTTP/1.1 400 ")
        assert b'"message":"Upgrade request required"' in socket.recv(65536)


def test_unknown_upgrade_is_rejected(cluster: Cluster, shared: str) -> None:
    where = path(shared, "exec", command=["true"], **WANTED)
    socket, head = ask(cluster, where, "Connection: Upgrade", "Upgrade: h2c", "Content-Length: 0")
    with socket:
        assert head.startswith(b"HTTP/1.1 400 ")


def test_streams_must_be_asked_for(cluster: Cluster, shared: str) -> None:
    message = "you must specify at least 1 of stdin, stdout, stderr"
    ended = run(cluster, shared, "true", stdout="0", stderr="0")
    assert ended.status["message"] == f"Internal error occurred: unable to upgrade connection: {message}"
    where = path(shared, "exec", command=["true"])
    assert refusal(cluster, where, "v4.channel.k8s.io") == (400, message)


def test_container_that_does_not_run_is_not_found(cluster: Cluster) -> None:
    cluster.load(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "waiting", "annotations": {"kubist.io/outcome": "ErrImagePull"}},
            "spec": {"containers": [{"name": "main", "image": "app"}]},
        }
    )
    cluster.wait("pod/waiting", lambda pod: bool(pod["status"].get("containerStatuses")), timeout=30)
    problem = 'container not found ("main")'
    ended = run(cluster, "waiting", "true")
    assert ended.status["message"] == f"Internal error occurred: unable to upgrade connection: {problem}"
    where = path("waiting", "exec", command=["true"], **WANTED)
    assert refusal(cluster, where, "v4.channel.k8s.io") == (400, problem)
    with pytest.raises(Refused, match="is waiting to start: ") as raised:
        cluster.request("GET", "/api/v1/namespaces/default/pods/waiting/log")
    assert raised.value.code == 400


def test_client_that_attaches_too_late_gets_the_output(cluster: Cluster) -> None:
    command = ["sh", "-c", "echo done; exit 3"]
    cluster.load(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "brief"},
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": "app", "stdin": True, "command": command}],
            },
        }
    )
    cluster.wait("pod/brief", lambda pod: pod["status"]["phase"] == "Failed", timeout=30)
    client = open_websocket(
        cluster, path("brief", "attach", stdin="1", stdout="1", stderr="1"), "v5.channel.k8s.io"
    )
    ended = drain(client)
    assert (ended.out, ended.status["status"]) == ("done\n", "Success")


def test_session_ends_with_its_pod(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod()
    client = open_websocket(
        cluster, path(name, "exec", command=["sleep", "3600"], **WANTED), "v5.channel.k8s.io"
    )
    assert client.recv_data()[1] == b"\1"
    cluster.delete(f"pod/{name}", gracePeriodSeconds=0)
    assert drain(client).raw == ""
    pods = cluster.inner.api.kubelet._pods  # type: ignore[union-attr]
    wait_for(lambda: ("default", name) not in pods._followed)


def test_unread_stdin_does_not_lose_the_result(cluster: Cluster, shared: str) -> None:
    where = path(shared, "exec", command=["sh", "-c", "exit 3"], stdin="1", stdout="1")
    socket, client = open_spdy(cluster, where, "v4.channel.k8s.io")
    with socket:
        error, stdin, _ = (client.open(streamType=kind) for kind in ("error", "stdin", "stdout"))
        client.send(stdin, b"x" * 2_000_000)
        client.read_until_closed()
    assert json.loads(client.data[error]) == CODE_3


def test_large_stdin_comes_back_whole(cluster: Cluster, shared: str) -> None:
    where = path(shared, "exec", command=["cat"], stdin="1", stdout="1")
    client = open_websocket(cluster, where, "v5.channel.k8s.io")
    received = b""
    for place in range(40):
        client.send_binary(b"\0" + bytes([place]) * 65_536)
        while len(received) < (place + 1) * 65_536:
            _, data = client.recv_data()
            received += data[1:]
    client.send_binary(b"\xff\0")
    assert drain(client).code == 0
    assert received == b"".join(bytes([place]) * 65_536 for place in range(40))


def test_interactive_shell_echoes_and_edits_lines(cluster: Cluster, shared: str) -> None:
    where = path(shared, "exec", command=["sh"], stdin="1", stdout="1", tty="1")
    client = open_websocket(cluster, where, "v5.channel.k8s.io")
    client.send_binary(b"\4" + json.dumps({"Width": 80, "Height": 24}).encode())
    client.send_binary(b"\0echo hx\x7fi\r")
    client.send_binary(b"\0nope\r")
    client.send_binary(b"\0\x1b[Aexit 3\r")
    ended = drain(client)
    shown = ended.out.split("\r\n")
    assert shown[0] == "# echo hx\b \bi" and shown[1] == "hi"
    assert shown[2] == "# nope" and "cannot be simulated" in shown[3]
    assert shown[4] == "# exit 3" and ended.code == 3


def test_attach_says_that_the_pod_is_simulated(cluster: Cluster, shared: str) -> None:
    ended = run(cluster, shared, subresource="attach")
    assert (ended.err, ended.code) == ("kubist: pod default/shared is simulated: no image runs\n", 0)


def test_attach_with_stdin_is_a_shell(cluster: Cluster, shared: str) -> None:
    where = path(shared, "attach", stdin="1", stdout="1")
    client = open_websocket(cluster, where, "v5.channel.k8s.io")
    client.send_binary(b"\0hostname\n")
    client.send_binary(b"\xff\0")
    ended = drain(client)
    assert (ended.out, ended.code) == ("shared\n", 0)


def test_get_needs_permission_to_create(cluster: Cluster, shared: str) -> None:
    socket, head = ask(
        cluster,
        path(shared, "exec", command=["true"], **WANTED),
        "Impersonate-User: nobody",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        method="GET",
    )
    with socket:
        assert head.startswith(b"HTTP/1.1 403 ")


def test_attached_container_ends_with_its_shell(cluster: Cluster) -> None:
    container = {"name": "main", "image": "busybox", "args": ["sh"], "stdin": True}
    spec = {"containers": [container], "restartPolicy": "Never"}
    cluster.load({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "attached"}, "spec": spec})
    cluster.wait("pod/attached", "Ready", timeout=30)
    client = open_websocket(cluster, path("attached", "attach", stdin="1", stdout="1"), "v5.channel.k8s.io")
    client.send_binary(b"\0echo here\nexit 4\n")
    ended = drain(client)
    assert (ended.out, ended.status["status"]) == ("here\n", "Success")
    cluster.wait("pod/attached", lambda pod: pod["status"]["phase"] == "Failed", timeout=30)
    (status,) = cluster.get("pod/attached")["status"]["containerStatuses"]
    assert status["state"]["terminated"]["exitCode"] == 4


def test_moving_the_file_of_a_probe_makes_the_container_unready(cluster: Cluster) -> None:
    probe = {"httpGet": {"path": "/index.html", "port": 80}, "periodSeconds": 1}
    spec = {"containers": [{"name": "main", "image": "app", "readinessProbe": probe}]}
    cluster.request("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "probed"}, "spec": spec})
    cluster.wait("pod/probed", "Ready")

    def is_ready(pod: dict[str, Any]) -> bool:
        return bool(pod["status"]["containerStatuses"][0]["ready"])

    ended = run(cluster, "probed", "sh", "-c", "mv -v /index.html /tmp/ || true")
    assert ended.out == "'/index.html' -> '/tmp/index.html'\n"
    cluster.wait("pod/probed", lambda pod: not is_ready(pod))
    run(cluster, "probed", "sh", "-c", "mv -v /tmp/index.html /index.html || true")
    cluster.wait("pod/probed", is_ready)
    run(cluster, "probed", "rm", "/index.html")
    cluster.wait("pod/probed", lambda pod: not is_ready(pod))


def test_files_are_moved(cluster: Cluster, shared: str) -> None:
    script = "echo moved > /tmp/a && mkdir /d && mv /tmp/a /d && cat /d/a; mv /tmp/a /tmp/b"
    ended = run(cluster, shared, "sh", "-c", script)
    assert ended.out == "moved\n"
    assert ended.err == "mv: can't rename '/tmp/a': No such file or directory\n"


def test_tar_ends_with_its_archive_although_stdin_stays_open(cluster: Cluster, make_pod: MakePod) -> None:
    name, sent = make_pod(), archive(file=b"content")
    where = path(name, "exec", command=["tar", "xf", "-", "-C", "/"], stdin="1", **WANTED)
    client = open_websocket(cluster, where, "v4.channel.k8s.io")
    client.send_binary(b"\0" + sent[:700])
    client.send_binary(b"\0" + sent[700:])
    assert drain(client).code == 0
    assert run(cluster, name, "cat", "/file").out == "content"


def test_command_handles_what_was_sent_before_the_client_left(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod()
    where = path(name, "exec", command=["sh"], stdin="1", **WANTED)
    client = open_websocket(cluster, where, "v4.channel.k8s.io")
    client.send_binary(b"\0echo kept > /file\n")
    client.close()
    wait_for(lambda: run(cluster, name, "cat", "/file").out == "kept\n")
