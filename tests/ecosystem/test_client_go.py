"""client-go, the library of most controllers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.ecosystem.installation import build, copy_sources, require
from tests.ecosystem.servers import Server, unique
from tests.ecosystem.table import exercises

VERSION = "v0.36.4"


@pytest.fixture(scope="module")
def program() -> Path:
    require("go")
    sources = copy_sources("go")
    build(["go", "build", "-mod=mod", "-o", "ecosystem", "."], sources)
    return sources / "ecosystem"


def test_go_module_pins_the_version_in_the_table() -> None:
    assert f"k8s.io/client-go {VERSION}\n" in Path(__file__).with_name("go").joinpath("go.mod").read_text()


@exercises("client-go", VERSION, "shared informer with protobuf and WatchList")
def test_informer_uses_watch_list_in_protobuf(program: Path, server: Server) -> None:
    assert server.run(program, "informer", unique("informer")).endswith("passed\n")


@exercises("client-go", VERSION, "shared informer over a restart of the server")
def test_informer_survives_a_restart(program: Path, own_server: Server) -> None:
    with subprocess.Popen(
        [program, "restart", "restart"],
        env={**os.environ, **own_server.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as client:
        assert client.stdin is not None and client.stdout is not None
        assert client.stdout.readline() == "synced\n"
        own_server.stop()
        own_server.start()
        output, _ = client.communicate("restarted\n", 120)
    assert (client.returncode, output) == (0, "passed\n")


@exercises("client-go", VERSION, "server-side apply: conflicts, force, extraction, removal")
def test_server_side_apply(program: Path, server: Server) -> None:
    assert server.run(program, "apply", unique("apply")).endswith("passed\n")


@exercises("client-go", VERSION, "leader election with a Lease")
def test_leader_election(program: Path, server: Server) -> None:
    assert server.run(program, "election", unique("election")).endswith("passed\n")


@exercises("client-go", VERSION, "dynamic client and dynamic informer on a CRD")
def test_dynamic_client(program: Path, server: Server) -> None:
    assert server.run(program, "dynamic", unique("dynamic")).endswith("passed\n")


@exercises("client-go", VERSION, "aggregated discovery, RESTMapper, short names, OpenAPI v3")
def test_discovery(program: Path, server: Server) -> None:
    assert server.run(program, "discovery", unique("discovery")).endswith("passed\n")


@exercises("client-go", VERSION, "logs, exec and port-forward of a simulated pod, over SPDY and WebSocket")
def test_streams_of_a_pod(program: Path, server: Server) -> None:
    assert server.run(program, "streams", unique("streams")).endswith("passed\n")
