"""`kubist replay`: a recording or audit log against a new server, or against one that runs."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from kubist.testing import Cluster
from tests.bench.fault_clients import MAPS, config_map


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kubist", "replay", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def line(method: str, path: str, status: int, **more: Any) -> str:
    return json.dumps({"method": method, "path": path, "status": status, **more}) + "\n"


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "r.jsonl"
    path.write_text(
        line("POST", MAPS, 201, requestObject=config_map("replayed", x="1"))
        + line("GET", f"{MAPS}/replayed", 200)
        + line("GET", MAPS, 200, query="watch=1")
    )
    return path


def test_new_server_gives_the_same_statuses(recording: Path) -> None:
    done = run(recording)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "2 requests sent, 0 differ, 1 skipped",
        "skipped 1: watches are not replayed",
    ]


def test_differences_are_reported_with_file_and_line(recording: Path) -> None:
    recording.write_text(
        recording.read_text() + line("POST", MAPS, 201, requestObject=config_map("replayed"))
    )
    done = run(recording)
    assert done.returncode == 1
    assert f"{recording}:4: POST {MAPS}: recorded 201, now 409: configmaps" in done.stdout
    done = run(recording, "--output", "json")
    report = json.loads(done.stdout)
    assert done.returncode == 1 and report["differing"] == 1 and report["differences"][0]["line"] == 4
    assert report["skips"] == [
        {"line": 3, "request": f"GET {MAPS}?watch=1", "reason": "watches are not replayed"}
    ]


def test_malformed_lines_are_reported_and_nothing_is_sent(cluster: Cluster, recording: Path) -> None:
    recording.write_text(recording.read_text() + "{\n" + line("GET", "here", 200))
    done = run(recording, "--kubeconfig", cluster.kubeconfig)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    first, second, last = done.stderr.splitlines()
    assert first.startswith(f"{recording}:4: not JSON")
    assert second.startswith(f"{recording}:5: path: must start with /")
    assert f"2 lines of {recording} are malformed; nothing was sent" in last
    assert not [item for item in cluster.list("cm") if item["metadata"]["name"] == "replayed"]


def test_running_server_by_kubeconfig_or_address(cluster: Cluster, recording: Path, tmp_path: Path) -> None:
    assert run(recording, "--kubeconfig", cluster.kubeconfig).returncode == 0
    assert cluster.get("cm/replayed")["data"] == {"x": "1"}
    cluster.delete("cm/replayed")
    access = ("--server", cluster.url, "--token", cluster.token, "--certificate-authority", cluster.ca)
    done = run(recording, *access)
    assert done.returncode == 0, done.stderr
    cluster.delete("cm/replayed")
    document = cluster.kubeconfig_document()
    certificate, key = cluster.identity.client_certificate, cluster.identity.client_key
    document["users"][0]["user"] = {"client-certificate": str(certificate), "client-key": str(key)}
    (tmp_path / "config").write_text(json.dumps(document))
    done = run(recording, "--kubeconfig", tmp_path / "config")
    assert done.returncode == 0, done.stderr
    assert cluster.get("cm/replayed")


def test_certificate_of_the_server_itself_can_be_the_authority(
    cluster: Cluster, recording: Path, tmp_path: Path
) -> None:
    address = urlsplit(cluster.url)
    leaf = tmp_path / "leaf.pem"
    leaf.write_text(ssl.get_server_certificate((address.hostname or "", address.port or 0)))
    done = run(recording, "--server", cluster.url, "--token", cluster.token, "--certificate-authority", leaf)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("content", ["", "no certificate\n"])
def test_authority_without_a_certificate_is_an_error(recording: Path, tmp_path: Path, content: str) -> None:
    (tmp_path / "ca.pem").write_text(content)
    done = run(recording, "--server", "https://127.0.0.1:1", "--certificate-authority", tmp_path / "ca.pem")
    assert done.returncode == 2
    assert "ca.pem is invalid: there is no certificate in PEM form" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no file"),
        (["none.jsonl"], "none.jsonl"),
        (["FILE", "--token", "x"], "need --server"),
        (["FILE", "--output", "xml"], "must be text or json"),
        (["FILE", "--server", "nowhere"], "must be a URL"),
        (["FILE", "--server", "https://127.0.0.1:1"], "refused"),
        (["FILE", "--kubeconfig", "none.yaml"], "none.yaml"),
        (["FILE", "--kubeconfig", "FILE"], "is no kubeconfig"),
        (["FILE", "--no-such-flag"], "no-such-flag"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "empty").write_text("")
    done = run(*(str(tmp_path / "empty") if word == "FILE" else word for word in arguments))
    if arguments[1:3] == ["--server", "https://127.0.0.1:1"]:
        (tmp_path / "empty").write_text(line("GET", "/version", 200))
        done = run(tmp_path / "empty", *arguments[1:])
    assert done.returncode != 0 and said in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1 and "Traceback" not in done.stderr
