"""The pytest plugin from a user's view."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from kubist.testing import Cluster, Host
from kubist.testing.cluster import Refused
from tests.testing.widgets import CRD, WIDGET


def config_map(name: str, **data: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_clusters_do_not_see_each_other(cluster: Cluster, kubist_server: Cluster, kubist_host: Host) -> None:
    other = kubist_host.cluster()
    try:
        cluster.load(config_map("mine"))
        for elsewhere in (other, kubist_server):
            with pytest.raises(Refused) as refusal:
                elsewhere.get("cm/mine")
            assert refusal.value.code == 404
        assert cluster.get("configmaps/mine")["metadata"]["name"] == "mine"
    finally:
        other.stop()


def test_clusters_start_and_stop(kubist_host: Host) -> None:
    for _ in range(10):
        cluster = kubist_host.cluster()
        assert cluster.get("ns/default")
        # 409 in a cluster that is not new
        cluster.request("POST", "/api/v1/namespaces/default/configmaps", config_map("a", x="y"))
        cluster.stop()


def test_new_cluster_has_the_default_service_account(cluster: Cluster) -> None:
    assert cluster.get("sa/default")
    assert "BEGIN CERTIFICATE" in cluster.get("cm/kube-root-ca.crt")["data"]["ca.crt"]


@pytest.mark.usefixtures("swept")
def test_kubeconfig_works_with_real_clients(cluster: Cluster) -> None:
    kubernetes = pytest.importorskip("kubernetes")
    core = kubernetes.client.CoreV1Api(cluster.clients.kubernetes)
    core.create_namespaced_config_map("default", config_map("a", x="y"))
    assert core.read_namespaced_config_map("a", "default").data == {"x": "y"}
    loaded = kubernetes.config.new_client_from_config(str(cluster.kubeconfig))
    try:
        assert "default" in [
            n.metadata.name for n in kubernetes.client.CoreV1Api(loaded).list_namespace().items
        ]
    finally:
        loaded.close()
        loaded.rest_client.pool_manager.clear()


USES = {
    "lightkube": "from lightkube.resources.core_v1 import Node; list(cluster.clients.lightkube.list(Node))",
    "kr8s": "assert cluster.clients.kr8s.version()",
    "pykube": "import pykube; assert list(pykube.Namespace.objects(cluster.clients.pykube))",
}


def is_installed(library: str) -> bool:
    """Whether a library is installed. A folder without `__init__.py` (that of lightkube-models) does not count."""
    found = importlib.util.find_spec(library)
    return found is not None and found.origin is not None


def test_ready_made_clients_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = [library for library in USES if is_installed(library)]
    if not installed:
        pytest.skip(f"none of {', '.join(USES)} is installed")
    tests = [f"def test_{library}(cluster):\n    {USES[library]}\n" for library in installed]
    (tmp_path / "test_clients.py").write_text("\n".join(tests))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    assert f"{len(installed)} passed" in run_pytest(tmp_path)
    assert list(temporary.iterdir()) == [], "kr8s copies the certificate of the authority"


def run_pytest(where: Path, *options: str) -> str:
    """Output of pytest for a directory of tests, without the settings of this repository."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=",
        *options,
        str(where),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=where)
    return done.stdout + done.stderr


def test_crd_and_its_custom_resources_load_together(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(f"{CRD}---\n{WIDGET}\n")
    cluster.load(tmp_path)
    assert cluster.get("widgets.example.com/one")["kind"] == "Widget"
    cluster.load(config_map("dict"), "apiVersion: v1\nkind: Secret\nmetadata: {name: text}\n")
    assert cluster.get("secret/text")["type"] == "Opaque"
    assert cluster.get("cm/dict")


def test_wait_for_conditions_functions_and_deletion(cluster: Cluster) -> None:
    cluster.load(config_map("a", x="1"))
    assert cluster.wait("cm/a", lambda cm: cm["data"]["x"] == "1")["data"] == {"x": "1"}
    with pytest.raises(TimeoutError, match=r"configmaps/a: not Ready after 0\.01 s"):
        cluster.wait("cm/a", "Ready", timeout=0.01)
    cluster.delete("cm/a")
    cluster.wait("cm/a", "delete")


def test_restored_snapshot_has_all_objects(cluster: Cluster) -> None:
    cluster.load(config_map("kept", x="before"))
    taken = cluster.snapshot()
    cluster.load(config_map("kept", x="after"), config_map("new"))
    cluster.delete("sa/default")
    cluster.restore(taken)
    assert cluster.get("cm/kept")["data"] == {"x": "before"}
    assert cluster.get("sa/default")
    with pytest.raises(Refused):
        cluster.get("cm/new")
    assert cluster.snapshot() == taken


def test_coroutines_wait_without_blocking_their_loop(cluster: Cluster) -> None:
    async def work() -> None:
        waiting = asyncio.ensure_future(cluster.wait_async("cm/late", lambda cm: True))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        await asyncio.to_thread(cluster.load, config_map("late"))
        assert (await waiting)["metadata"]["name"] == "late"

    asyncio.run(work())


@pytest.mark.kubist(controllers=())
def test_settings_of_a_mark_reach_the_cluster(cluster: Cluster) -> None:
    assert cluster.config.controllers == ()
    with pytest.raises(Refused):
        cluster.get("sa/default")


def test_two_hundred_tests_have_a_cluster_each(tmp_path: Path) -> None:
    (tmp_path / "test_many.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', range(200))\n"
        "def test_one(cluster, n):\n"
        "    cluster.request('POST', '/api/v1/namespaces/default/configmaps', {'metadata': {'name': 'same'}})\n"
    )
    assert "200 passed" in run_pytest(tmp_path)
