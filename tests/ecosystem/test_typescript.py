"""@kubernetes/client-node, the client of Node.js."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.ecosystem.installation import EXAMPLES, build, copy_sources, require
from tests.ecosystem.servers import Server, unique
from tests.ecosystem.table import exercises

NAME = "@kubernetes/client-node"
VERSION = "2.0.1"


@pytest.fixture(scope="module")
def program() -> list[Path]:
    """Command of our program. The client needs a newer Node.js than many systems have, so that is
    installed as a package too."""
    require("npm", "node")
    sources = copy_sources("typescript")
    build(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"], sources)
    binaries = sources / "node_modules/.bin"
    build(["node", binaries / "tsc"], sources)
    return [binaries / "node", sources / "built/main.js"]


def test_package_pins_the_version_in_the_table() -> None:
    package = json.loads(Path(__file__).with_name("typescript").joinpath("package.json").read_text())
    assert package["dependencies"] == {NAME: VERSION}


@exercises(NAME, VERSION, "informer with a label selector")
def test_informer(program: list[Path], server: Server) -> None:
    assert server.run(*program, "informer", unique("informer")).endswith("passed\n")


@exercises(NAME, VERSION, "watch with initial events and a field selector")
def test_watch(program: list[Path], server: Server) -> None:
    assert server.run(*program, "watch", unique("watch")).endswith("passed\n")


@exercises(NAME, VERSION, "JSON patch, merge patch, strategic merge patch")
def test_patch(program: list[Path], server: Server) -> None:
    assert server.run(*program, "patch", unique("patch")).endswith("passed\n")


@exercises(NAME, VERSION, "server-side apply of a custom resource")
def test_apply(program: list[Path], server: Server) -> None:
    assert server.run(*program, "apply", unique("apply")).endswith("passed\n")


@exercises(NAME, VERSION, "the example typescript-informer, with node's test runner")
def test_example(server: Server) -> None:
    require("npm", "node")
    sources = copy_sources("typescript-informer", EXAMPLES)
    build(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"], sources)
    output = server.run("npm", "--prefix", sources, "test")
    assert "pass 2" in output and "fail 0" in output
