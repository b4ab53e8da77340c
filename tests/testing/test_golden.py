"""Golden files of recorded requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubist.testing import Cluster, golden
from kubist.testing.golden import Normaliser
from kubist.testing.recording import Requests
from tests.bench.fault_clients import MAPS
from tests.testing.test_plugin import run_pytest

TESTS = """
def test_writes(cluster):
    with cluster.recording() as requests:
        maps = "/api/v1/namespaces/default/configmaps"
        made = cluster.request("POST", maps, {"metadata": {"generateName": "web-"}, "data": {"x": "VALUE"}})
        cluster.request("PUT", f"{maps}/{made['metadata']['name']}", made)
        service = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
        cluster.request("POST", "/api/v1/namespaces/default/services", service)
    requests.writes().match_golden("golden/writes.txt", responses=True)
"""


def run(directory: Path, value: str, *options: str) -> str:
    (directory / "test_it.py").write_text(TESTS.replace("VALUE", value))
    return run_pytest(directory, *options)


def test_golden_file_is_written_compared_and_updated(tmp_path: Path) -> None:
    path = tmp_path / "golden" / "writes.txt"
    report = run(tmp_path, "1")
    assert f"the golden file {path} does not exist" in report and "--kubist-update-golden" in report
    assert not path.exists()
    assert "1 passed" in run(tmp_path, "1", "--kubist-update-golden")
    written = path.read_text()
    assert written.startswith("POST /api/v1/namespaces/default/configmaps -> 201, by admin\n")
    assert "PUT /api/v1/namespaces/default/configmaps/web-<suffix-1> -> 200, by admin\n" in written
    for placeholder in ("uid: <uid-1>", "resourceVersion: <version-1>", "creationTimestamp: <time>"):
        assert placeholder in written
    assert "clusterIP: <ip-1>" in written and "- <ip-1>" in written and "nodePort: <port-1>" in written
    assert "time: <time>" in written
    assert "1 passed" in run(tmp_path, "1")
    report = run(tmp_path, "2")
    assert "1 failed" in report and f"differ from the golden file {path}" in report
    assert '-      x: "1"' in report and '+      x: "2"' in report
    assert path.read_text() == written


def test_same_value_has_the_same_placeholder() -> None:
    uid, other = "65abbb7a-c0f4-46b7-b462-e6c470a766e8", "65abbb7a-c0f4-46b7-b462-e6c470a766e9"
    made = {"metadata": {"generateName": "web-", "name": "web-x7k2p"}}
    normaliser = Normaliser([{"responseObject": {"items": [made]}}])
    for value, expected in (
        ({"uid": uid}, {"uid": "<uid-1>"}),
        ([other, uid], ["<uid-2>", "<uid-1>"]),
        (f"pod {uid} at 2026-11-17T18:50:42Z", "pod <uid-1> at <time>"),
        ("2026-11-17T18:50:42.123456Z", "<time>"),
        ({"resourceVersion": "12"}, {"resourceVersion": "<version-1>"}),
        ({"resourceVersion": "0"}, {"resourceVersion": "0"}),
        ("limit=5&resourceVersion=12", "limit=5&resourceVersion=<version-1>"),
        ("/pods?resourceVersion=12", "/pods?resourceVersion=<version-1>"),
        ("10.96.0.1", "<ip-1>"),
        ("http://10.96.0.1:80", "http://<ip-1>:80"),
        ("https://127.0.0.1:34567/x", "https://127.0.0.1:<port-1>/x"),
        ("fd00::1", "<ip-2>"),
        ("v1.2.3", "v1.2.3"),
        ({"nodePort": 30123, "port": 80}, {"nodePort": "<port-2>", "port": 80}),
        ("pod web-x7k2p is ready", "pod web-<suffix-1> is ready"),
        ("web-x7k2", "web-x7k2"),
        ("eyJhbGciOi.eyJpc3Mi.c2ln", "<token-1>"),
        (5, 5),
    ):
        assert normaliser.value(value) == expected


def test_long_differences_are_cut(tmp_path: Path, cluster: Cluster) -> None:
    with cluster.recording() as requests:
        cluster.request("GET", MAPS)
    (tmp_path / "golden.txt").write_text("\n" * 1000)
    with pytest.raises(AssertionError) as error:
        requests.match_golden(tmp_path / "golden.txt")
    assert len(str(error.value).splitlines()) < golden.MOST_LINES + 5


def test_empty_recording_has_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "none.txt").write_text("")
    Requests([]).match_golden(tmp_path / "none.txt")


def test_incomplete_recording_is_not_compared(tmp_path: Path) -> None:
    (tmp_path / "none.txt").write_text("")
    with pytest.raises(AssertionError, match="the recording dropped 3 requests"):
        Requests([], dropped=3).match_golden(tmp_path / "none.txt")
