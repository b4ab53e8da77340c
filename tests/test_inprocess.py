"""`kubist.Server` as a library: in a thread, in the caller's event loop, with and without a data directory."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import urllib.request
from pathlib import Path

import pytest

import kubist
from kubist.base.listening import bound
from kubist.testing import Cluster, Host


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


def ask_with_kubeconfig(path: Path) -> str:
    """Name of the user of a kubeconfig, as its server knows it."""
    document = json.loads(path.read_text())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    context = ssl.create_default_context(
        cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
    )
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    request = urllib.request.Request(
        f"{cluster['server']}/apis/authentication.k8s.io/v1/selfsubjectreviews",
        json.dumps(review).encode(),
        {"Authorization": f"Bearer {user['token']}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, context=context) as answer:
        name: str = json.load(answer)["status"]["userInfo"]["username"]
        return name


def test_kubeconfig_is_valid_after_a_restart(tmp_path: Path) -> None:
    """Also a copy, and one that was read before the restart."""
    with kubist.Server(data_dir=tmp_path, controllers=()) as server:
        port, path = server.port, server.kubeconfig
        copy = tmp_path / "copy"
        copy.write_bytes(path.read_bytes())
    with kubist.Server(data_dir=tmp_path, secure_port=port, controllers=()):
        assert [ask_with_kubeconfig(old) for old in (path, copy)] == ["admin", "admin"]
    (tmp_path / "tokens.csv").unlink()
    with kubist.Server(data_dir=tmp_path, secure_port=port, controllers=()) as server:
        assert ask_with_kubeconfig(server.kubeconfig) == "admin"


def test_damaged_token_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "tokens.csv").write_text("a,b\n")
    with kubist.Server(data_dir=tmp_path, controllers=()) as server:
        assert ask_with_kubeconfig(server.kubeconfig) == "admin"


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.2", "127.0.0.2"),
        ("::1", "[::1]"),
        ("0.0.0.0", "127.0.0.1"),
        ("::", "127.0.0.1"),
    ],
)
def test_url_has_the_address_of_the_server(address: str, host: str) -> None:
    needs_address("::1" if ":" in address else address)
    with Cluster(bind_address=address, controllers=()) as server:
        assert server.url == f"https://{host}:{server.port}"
        assert ask_with_kubeconfig(server.kubeconfig) == "admin"
        assert server.get("namespace/default")


def test_cluster_of_a_host_has_its_own_address(kubist_host: Host) -> None:
    needs_address("127.0.0.2")
    with kubist_host.cluster(bind_address="127.0.0.2", controllers=()) as cluster:
        assert cluster.get("namespace/default")
        with cluster.fork() as fork:
            assert fork.get("namespace/default")


def needs_address(address: str) -> None:
    try:
        bound(address, 0).close()
    except OSError:
        pytest.skip(f"this machine has no address {address}")


def test_files_and_directories_may_be_paths(tmp_path: Path) -> None:
    stage = tmp_path / "stages"
    stage.mkdir()
    (stage / "stage.yaml").write_text("")
    config = kubist.Config(data_dir=tmp_path, stages=[stage], audit_log_path=tmp_path / "log")  # type: ignore[arg-type]
    assert (config.data_dir, config.stages) == (str(tmp_path), (str(stage),))
    assert config.audit_log_path == str(tmp_path / "log")
    assert kubist.Server(snapshot=tmp_path / "backup").config.snapshot == str(tmp_path / "backup")
