"""exec and attach answered by Python functions of a test."""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Any

from kubist.testing import Cluster, Exec
from tests.simulation.streams.conftest import MakePod
from tests.simulation.streams.upgraded import (
    WANTED,
    drain,
    hang_up,
    open_websocket,
    path,
    run,
)
from tests.waiting import wait_for


def test_handler_returns_output_and_exit_code(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod(command=["serve", "--all"])
    results: list[Any] = ["text", b"bytes", 4, ("both", 5), None]
    calls: list[Exec] = []

    @cluster.on_exec(f"app={name}")
    def handle(call: Exec) -> Any:
        calls.append(call)
        return results[int(call.command[1]) if len(call.command) > 1 and call.command[0] == "nth" else -1]

    ended = [run(cluster, name, "nth", str(place)) for place in range(5)]
    assert [(each.out, each.code) for each in ended] == [
        ("text", 0),
        ("bytes", 0),
        ("", 4),
        ("both", 5),
        ("", 0),
    ]
    call = calls[0]
    assert (call.command, call.container, call.tty) == (["nth", "0"], "main", False)
    assert call.pod["metadata"]["name"] == name
    assert run(cluster, name, subresource="attach").code == 0
    assert calls[-1].command == ["serve", "--all"]


def test_handler_streams(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod()

    @cluster.on_exec(f"app={name}")
    def handle(call: Exec) -> Generator[str, None, int]:
        for line in call.stdin:
            yield f"got {line.decode().strip()};"
        call.write_error("done")
        return 3

    where = path(name, "exec", command=["read"], stdin="1", **WANTED)
    client = open_websocket(cluster, where, "v5.channel.k8s.io")
    client.send_binary(b"\0one\n")
    assert client.recv_data()[1] == b"\1"
    assert client.recv_data()[1] == b"\1got one;"
    client.send_binary(b"\0two\n")
    assert client.recv_data()[1] == b"\1got two;"
    client.send_binary(b"\xff\0")
    ended = drain(client)
    assert (ended.err, ended.code) == ("done", 3)


def test_failing_handler_shows_its_traceback(cluster: Cluster, make_pod: MakePod) -> None:
    name = make_pod()

    @cluster.on_exec(f"app={name}")
    def broken(_: Exec) -> None:
        raise ValueError("out of paper")

    ended = run(cluster, name, "true")
    assert ended.code == 1 and "ValueError: out of paper" in ended.err


def test_handler_of_a_client_that_left_gets_the_end_of_stdin(cluster: Cluster, make_pod: MakePod) -> None:
    name, seen, began = make_pod(), [], threading.Event()

    @cluster.on_exec(f"app={name}")
    def wait(call: Exec) -> None:
        began.set()
        seen.append(call.stdin.read())

    where = path(name, "exec", command=["wait"], stdin="1", stdout="1")
    client = open_websocket(cluster, where, "v5.channel.k8s.io")
    client.recv_data()
    assert began.wait(30)
    hang_up(client)
    wait_for(lambda: seen == [b""])


def test_waiting_handlers_do_not_hold_up_the_server(cluster: Cluster, make_pod: MakePod) -> None:
    name, began, end = make_pod(), [], threading.Event()

    @cluster.on_exec(f"app={name}")
    def wait(call: Exec) -> str:
        began.append(call)
        end.wait(60)
        return "ended"

    where = path(name, "exec", command=["wait"], **WANTED)
    clients = [open_websocket(cluster, where, "v5.channel.k8s.io") for _ in range(20)]
    wait_for(lambda: len(began) == 20)
    cluster.load({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "meanwhile"}})
    end.set()
    assert [drain(client).out for client in clients] == ["ended"] * 20
