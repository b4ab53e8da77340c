"""kube-rs, the client and controller runtime of Rust."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.ecosystem.installation import build, copy_sources, require
from tests.ecosystem.servers import Server, unique
from tests.ecosystem.table import exercises

NAME = "kube-rs"
VERSION = "5.0.0"


@pytest.fixture(scope="module")
def program() -> Path:
    require("cargo")
    sources = copy_sources("rust")
    build(["cargo", "build", "--quiet"], sources, {"CARGO_TARGET_DIR": str(sources / "target")})
    return sources / "target/debug/ecosystem"


def test_crate_pins_the_version_in_the_table() -> None:
    manifest = Path(__file__).with_name("rust").joinpath("Cargo.toml").read_text()
    assert re.search(rf'^kube = {{ version = "={re.escape(VERSION)}"', manifest, re.MULTILINE)


@exercises(NAME, VERSION, "watcher, with a list and with streamed initial events")
def test_watcher(program: Path, server: Server) -> None:
    assert server.run(program, "watcher", unique("watcher")).endswith("passed\n")


@exercises(NAME, VERSION, "reflector")
def test_reflector(program: Path, server: Server) -> None:
    assert server.run(program, "reflector", unique("reflector")).endswith("passed\n")


@exercises(NAME, VERSION, "server-side apply: conflict and force")
def test_apply(program: Path, server: Server) -> None:
    assert server.run(program, "apply", unique("apply")).endswith("passed\n")


@exercises(NAME, VERSION, "Controller with a derived CRD, owned objects, status and a finalizer")
def test_controller(program: Path, server: Server) -> None:
    assert server.run(program, "controller", unique("controller")).endswith("passed\n")
