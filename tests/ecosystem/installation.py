"""Installs pinned software from package registries into a cache outside the repository."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
HERE = Path(__file__).parent
CACHE = Path(os.environ.get("KUBIST_ECOSYSTEM_CACHE") or Path.home() / ".cache/kubist-ecosystem")
OUTPUT = 20_000
"""Characters of output that a failure shows."""


def require(*tools: str) -> None:
    """Skips the test if a tool is not on PATH."""
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")


def copy_sources(name: str, below: Path = HERE) -> Path:
    """Copies one of our programs into the cache, where it can be built. Unchanged files keep their times."""
    target = CACHE / name
    for source in (below / name).rglob("*"):
        copy = target / source.relative_to(below / name)
        if source.is_dir() or source.name == "__pycache__" or source.suffix == ".pyc":
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            shutil.copyfile(source, copy)
    return target


def run(
    command: list[str | Path], directory: Path, seconds: float = 300, environment: Mapping[str, str] = {}
) -> str:
    """Runs a command, and returns its output. Fails with the end of the output."""
    finished = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
    )
    if finished.returncode:
        shown = " ".join(map(str, command))
        pytest.fail(f"{shown} exited with {finished.returncode}:\n{finished.stdout[-OUTPUT:]}", pytrace=False)
    return finished.stdout


def build(command: list[str | Path], directory: Path, environment: Mapping[str, str] = {}) -> None:
    """Runs an installation or a build, which may take long the first time."""
    run(command, directory, 3000, environment)


def go_module(module: str, version: str) -> Path:
    """Directory with a writable copy of the sources of a Go module."""
    require("go")
    sources = CACHE / f"{module.rpartition('/')[2]}-{version}"
    if not (sources / "go.mod").exists():
        shutil.rmtree(sources, ignore_errors=True)
        CACHE.mkdir(parents=True, exist_ok=True)
        build(["go", "mod", "download", f"{module}@{version}"], CACHE)
        held = json.loads(run(["go", "mod", "download", "-json", f"{module}@{version}"], CACHE))["Dir"]
        shutil.copytree(held, sources, copy_function=shutil.copyfile)
        for directory, _, _ in os.walk(sources):
            os.chmod(directory, 0o755)
    return sources


def go_program(module: str, version: str, package: str) -> Path:
    """Program of a Go module, built from its sources. A module with replaced dependencies cannot be installed."""
    sources = go_module(module, version)
    program = sources / "kubist-built-program"
    if not program.exists():
        build(["go", "build", "-o", program, package], sources)
    return program
