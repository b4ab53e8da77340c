"""`kubist serve --clusters` and `kubist clusters`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests import programs
from tests.cli.processes import kubist, running

DATA = "--data-dir=data"
MANIFESTS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
---
apiVersion: v1
kind: Namespace
metadata: {name: two}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Home directory with a running server."""
    home = tmp_path_factory.mktemp("home")
    with running(home, "serve", "--clusters", DATA, "--secure-port=0") as server:
        server.wait_for("(https://[0-9.:]+)")
        yield home


def test_list_create_and_delete(home: Path) -> None:
    assert "There are no clusters" in kubist("clusters", DATA, home=home).stdout
    (home / "manifests.yaml").write_text(MANIFESTS)
    flags = ("--storage", "disk", "--time-to-live=1h", "--manifests", "manifests.yaml", "--workloads")
    made = kubist("clusters", "create", "team-a", DATA, *flags, home=home)
    assert made.returncode == 0, made.stderr
    document = yaml.safe_load(made.stdout)
    assert document["clusters"][0]["cluster"]["server"].endswith("/clusters/team-a")
    assert yaml.safe_load(kubist("clusters", "kubeconfig", "team-a", DATA, home=home).stdout) == document
    (shown,) = json.loads(kubist("clusters", "list", "-o", "json", DATA, home=home).stdout)
    assert (shown["name"], shown["storage"], shown["workloads"]) == ("team-a", "disk", True)
    header, row = kubist("clusters", "list", DATA, home=home).stdout.splitlines()
    assert header.split() == ["NAME", "STATE", "STORAGE", "CREATED", "EXPIRES"]
    assert row.split()[:3] == ["team-a", "Running", "disk"]
    (home / "team-a.yaml").write_text(made.stdout)
    if programs.find("kubectl"):
        command = [
            "kubectl",
            "--kubeconfig",
            str(home / "team-a.yaml"),
            "get",
            "configmap/one",
            "ns/two",
            "-o",
            "name",
        ]
        read = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert read.stdout.split() == ["configmap/one", "namespace/two"]
    forked = kubist("clusters", "create", DATA, "--fork=team-a", home=home)
    name = yaml.safe_load(forked.stdout)["current-context"]
    for each in (name, "team-a"):
        assert kubist("clusters", "delete", each, DATA, home=home).stdout == f"Deleted the cluster {each}.\n"
    assert sorted(path.name for path in (home / "data" / "clusters").iterdir()) == [".memory"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("destroy",), 2, "unknown action 'destroy': choose list, create, delete or kubeconfig"),
        (("delete",), 2, "`kubist clusters delete` needs the name of a cluster"),
        (("delete", "missing"), 1, 'clusters.kubist.io "missing" not found'),
        (("create", "Upper"), 1, "name: Invalid value"),
        (("create", "a", "--manifests=missing.yaml"), 1, "missing.yaml: No such file or directory"),
        (("create", "a", "--storage=tape"), 1, "storage: Invalid value"),
    ],
)
def test_mistakes_are_one_line(home: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    done = kubist("clusters", *arguments, DATA, home=home)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_server_that_does_not_run(tmp_path: Path) -> None:
    done = kubist("clusters", DATA, home=tmp_path)
    assert (done.returncode, "No server runs on" in done.stdout) == (3, True)


def test_server_without_clusters(tmp_path: Path) -> None:
    with running(tmp_path, "serve", DATA, "--secure-port=0") as server:
        server.wait_for("(https://[0-9.:]+)")
        done = kubist("clusters", DATA, home=tmp_path)
        assert (done.returncode, "start it with `kubist serve --clusters`" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--clusters", "--workers=2"), "--clusters contradicts --workers"),
        (("--clusters", "--etcd-servers=http://127.0.0.1:1"), "--clusters contradicts --etcd-servers"),
        (("--clusters-idle-timeout=1s",), "--clusters-idle-timeout needs --clusters"),
    ],
)
def test_flags_that_exclude_clusters(tmp_path: Path, flags: tuple[str, ...], message: str) -> None:
    done = kubist("serve", DATA, *flags, home=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
