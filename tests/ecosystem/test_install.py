"""Installation with pip, pipx and uv, with all dependencies from a package index."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.processes import ROOT
from tests.ecosystem.installation import require
from tests.packaging.installed import check_serving, new_environment, run
from tests.packaging.test_container import BUILD

MEGABYTES = 85
"""Size limit of the environment that `make serve` creates."""


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    """Copy of the files under version control, as after `git clone`."""
    require("git")
    target = tmp_path / "checkout"
    listed = run("git", "ls-files", "-z").split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
    yield target
    shutil.rmtree(target)


def test_pip(checkout: Path, tmp_path: Path) -> None:
    python = new_environment(tmp_path / "venv")
    run(python, "-m", "pip", "install", "--quiet", checkout)
    check_serving(python, tmp_path)


def test_pipx(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = new_environment(tmp_path / "tools")
    run(tools, "-m", "pip", "install", "--quiet", "pipx")
    monkeypatch.setenv("PIPX_HOME", str(tmp_path / "pipx"))
    monkeypatch.setenv("PIPX_BIN_DIR", str(tmp_path / "bin"))
    run(tools, "-m", "pipx", "install", "--python", sys.executable, checkout)
    check_serving(tmp_path / "pipx/venvs/kubist/bin/python", tmp_path)
    assert "Kubernetes v1.36" in run(tmp_path / "bin/kubist", "version")


def test_uv_tool(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("uv")
    monkeypatch.setenv("UV_TOOL_DIR", str(tmp_path / "tools"))
    monkeypatch.setenv("UV_TOOL_BIN_DIR", str(tmp_path / "bin"))
    run("uv", "tool", "install", "--python", sys.executable, checkout)
    check_serving(tmp_path / "tools/kubist/bin/python", tmp_path)
    assert "Kubernetes v1.36" in run(tmp_path / "bin/kubist", "version")


def test_build_stage_of_the_image(checkout: Path, tmp_path: Path) -> None:
    (command,) = [instruction.value for instruction in BUILD if instruction.name == "RUN"]
    extras = [instruction.value for instruction in BUILD if instruction.name == "ARG"]
    target, image = tmp_path / "opt", new_environment(tmp_path / "image")
    script = command.replace("/opt/kubist", str(target)).replace("python -m", f"{image} -m")
    run("sh", "-euc", f"{extras[0]}; {script}", directory=checkout)
    check_serving(target / "bin/python", tmp_path)


def test_make_serve_installs_only_what_serving_needs(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("make")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    output = run("make", "serve", "ARGS=--help", directory=checkout)
    assert "[1/2] Creating the virtual environment .venv" in output and "kubist serve" in output
    size = sum(os.lstat(path).st_blocks * 512 for path in (checkout / ".venv").rglob("*")) / 2**20
    assert size <= MEGABYTES
    assert "[1/2]" not in run("make", "serve", "ARGS=--help", directory=checkout)
    (checkout / "pyproject.toml").touch()
    assert "[1/2] The virtual environment .venv exists" in run(
        "make", "serve", "ARGS=--help", directory=checkout
    )
