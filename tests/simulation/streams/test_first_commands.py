"""Commands that tools send first, to find a shell or to copy files."""

from __future__ import annotations

import pytest

from kubist.testing import Cluster
from tests.simulation.streams.conftest import MakePod
from tests.simulation.streams.test_shell import archive
from tests.simulation.streams.upgraded import WANTED, drain, open_spdy, open_websocket, path, run

SHELLS = {
    "k9s": ["sh", "-c", "command -v bash >/dev/null && exec bash || exec sh"],
    "lens": ["sh", "-c", "clear; (bash || ash || sh)"],
    "openshift": ["sh", "-i", "-c", "TERM=xterm sh"],
    "rancher": [
        "/bin/sh",
        "-c",
        "TERM=xterm-256color; export TERM; [ -x /bin/bash ] && ([ -x /usr/bin/script ] && "
        '/usr/bin/script -q -c "/bin/bash" /dev/null || exec /bin/bash) || exec /bin/sh',
    ],
    "devspace": ["sh", "-c", "TERM=xterm exec bash --login"],
    "dashboard": ["bash"],
}
TYPED = b"for x in 1 2\rdo echo got $x; done\rexit\r"
"""Input of a user, with a construct of two lines."""


@pytest.mark.parametrize("tool", SHELLS)
def test_shell_of_a_tool_opens_over_websocket(cluster: Cluster, pod: str, tool: str) -> None:
    where = path(pod, "exec", command=SHELLS[tool], stdin="1", stdout="1", tty="1")
    client = open_websocket(cluster, where, "v5.channel.k8s.io")
    client.send_binary(b"\0" + TYPED)
    ended = drain(client)
    assert "got 1\r\ngot 2\r\n" in ended.out
    assert ended.code == 0


@pytest.mark.parametrize("tool", SHELLS)
def test_shell_of_a_tool_opens_over_spdy(cluster: Cluster, pod: str, tool: str) -> None:
    where = path(pod, "exec", command=SHELLS[tool], stdin="1", **WANTED)
    socket, client = open_spdy(cluster, where, "v4.channel.k8s.io")
    with socket:
        error, stdin = client.open(streamType="error"), client.open(streamType="stdin")
        stdout, _ = client.open(streamType="stdout"), client.open(streamType="stderr")
        client.send(stdin, TYPED.replace(b"\r", b"\n"), fin=True)
        client.read_until_closed()
    assert client.data[stdout].endswith(b"got 1\ngot 2\n")
    assert b'"status":"Success"' in client.data[error]


@pytest.mark.parametrize(
    ("command", "out"),
    [
        (["which", "tar", "sh"], "/bin/tar\n/bin/sh\n"),
        (["test", "-x", "/bin/bash"], ""),
        (["printenv", "HOSTNAME"], "first\n"),
        (["uname", "-m"], "x86_64\n"),
        (["id"], "uid=1000 gid=0(root) groups=0(root)\n"),
        (["id", "-u"], "1000\n"),
        (["cat", "/etc/hostname"], "first\n"),
        (["sh", "-c", "tar cf - /etc/hostname | cat > /tmp/a.tar && ls /tmp"], "a.tar\n"),
        (
            ["sh", "-c", "test -d /tmp && [ -e /tmp ] || exit 1; echo ready >> /tmp/log; cat < /tmp/log"],
            "ready\n",
        ),
    ],
)
def test_command_of_a_tool(cluster: Cluster, pod: str, command: list[str], out: str) -> None:
    ended = run(cluster, pod, *command)
    assert (ended.out, ended.err, ended.code) == (out, "", 0)


def test_archive_is_extracted_by_a_script(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod()
    script = "mkdir -p /app && cd /app && tar -xmf - && cat a"
    where = path(name, "exec", command=["sh", "-c", script], stdin="1", **WANTED)
    client = open_websocket(cluster, where, "v5.channel.k8s.io")
    client.send_binary(b"\0" + archive(a=b"copied"))
    client.send_binary(b"\xff\0")
    ended = drain(client)
    assert (ended.out, ended.code) == ("copied", 0)


def test_sleeping_loop_runs_until_its_timeout(cluster: Cluster, pod: str) -> None:
    script = "timeout 0.2 sh -c 'while true; do sleep 0.05; done'; echo $?"
    assert run(cluster, pod, "sh", "-c", script).out == "124\n"


@pytest.fixture(scope="module")
def pod(cluster: Cluster) -> str:
    container = {"name": "main", "image": "app", "securityContext": {"runAsUser": 1000}}
    made = {"metadata": {"name": "first"}, "spec": {"containers": [container]}}
    cluster.request("POST", "/api/v1/namespaces/default/pods", made)
    cluster.wait("pod/first", "Ready", timeout=30)
    return "first"
