"""`kubist.Server` as a library: in a thread, in the caller's event loop, with and without a data directory."""

from __future__ import annotations

import asyncio
import json
import ssl
import urllib.request
from pathlib import Path

import kubist


def ask(server: kubist.Server, path: str) -> dict[str, object]:
    request = urllib.request.Request(server.url + path, headers={"Authorization": f"Bearer {server.token}"})
    with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=str(server.ca))) as answer:
        found: dict[str, object] = json.load(answer)
        return found


def test_server_runs_in_its_own_thread() -> None:
    with kubist.Server() as server:
        assert ask(server, "/version")["gitVersion"]
        assert json.loads(server.kubeconfig.read_text())["clusters"][0]["cluster"]["server"] == server.url


def test_server_runs_in_the_loop_of_the_caller() -> None:
    async def main() -> None:
        async with kubist.Server(controllers=()) as server:
            assert (await asyncio.to_thread(ask, server, "/api/v1/namespaces/default"))["kind"] == "Namespace"

    asyncio.run(main())


def test_data_directory_is_kept_across_servers(tmp_path: Path) -> None:
    uids = []
    for _ in range(2):
        with kubist.Server(data_dir=str(tmp_path)) as server:
            uids.append(ask(server, "/api/v1/namespaces/default")["metadata"]["uid"])  # type: ignore[index]
    assert uids[0] == uids[1]
