"""The fabric8 client of Java, with a kubeconfig and with its own library for tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kubist.cli.envtest import make_assets
from kubist.testing.envtest.assets import release
from tests.ecosystem.installation import build, copy_sources, require, run
from tests.ecosystem.servers import Server, unique
from tests.ecosystem.table import exercises

NAME = "fabric8 kubernetes-client"
VERSION = "7.9.0"
TEST_NAME = "fabric8 kube-api-test"
TEST_VERSION = "7.6.1"
JENVTEST_VERSION = "0.9.7"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


@pytest.fixture(scope="module")
def program() -> list[str]:
    """Command of our program. Maven resolves the dependencies; one source file needs only javac."""
    require("java", "javac", "mvn")
    sources = copy_sources("java")
    pom, resolved = sources / "pom.xml", sources / "resolved.xml"
    if not resolved.exists() or resolved.read_bytes() != pom.read_bytes():
        build(["mvn", "-q", "-B", COPY, "-DoutputDirectory=lib"], sources)
        resolved.write_bytes(pom.read_bytes())
    build(["javac", "-cp", "lib/*", "-d", "classes", "src/main/java/Ecosystem.java"], sources)
    return ["java", "-cp", os.pathsep.join([str(sources / "classes"), str(sources / "lib/*")]), "Ecosystem"]


def test_pom_pins_the_versions_in_the_table() -> None:
    pom = Path(__file__).with_name("java").joinpath("pom.xml").read_text()
    pinned = {"kubernetes-client": VERSION, "kube-api-test": TEST_VERSION, "jenvtest": JENVTEST_VERSION}
    for artifact, version in pinned.items():
        assert f"<artifactId>{artifact}</artifactId>\n      <version>{version}</version>" in pom


@exercises(NAME, VERSION, "informer with a label selector")
def test_informer(program: list[str], server: Server) -> None:
    assert server.run(*program, "informer", unique("informer")).endswith("passed\n")


@exercises(NAME, VERSION, "watch, JSON patch, merge patch")
def test_watch(program: list[str], server: Server) -> None:
    assert server.run(*program, "watch", unique("watch")).endswith("passed\n")


@exercises(NAME, VERSION, "server-side apply, stale update")
def test_apply(program: list[str], server: Server) -> None:
    assert server.run(*program, "apply", unique("apply")).endswith("passed\n")


@exercises(NAME, VERSION, "leader election with a Lease")
def test_leader_election(program: list[str], server: Server) -> None:
    assert server.run(*program, "election", unique("election")).endswith("passed\n")


@exercises(TEST_NAME, TEST_VERSION, "start and stop of `kubist envtest` assets, and all of the above")
def test_kube_api_test_starts_the_assets(program: list[str], tmp_path: Path) -> None:
    check_library(program, tmp_path, "kube-api-test", "KUBE_API_TEST_DIR")


@exercises("jenvtest", JENVTEST_VERSION, "start and stop of `kubist envtest` assets, and the same exercises")
def test_jenvtest_starts_the_assets(program: list[str], tmp_path: Path) -> None:
    check_library(program, tmp_path, "jenvtest", "JENVTEST_DIR")


def check_library(program: list[str], home: Path, library: str, variable: str) -> None:
    """Runs all exercises on a server that a library starts from the assets."""
    require("kubectl")
    assets = home / "assets"
    make_assets(assets)
    environment = {variable: str(assets), "HOME": str(home)}
    output = run([*program, library, release().partition("-")[0]], home, 120, environment)
    assert output.endswith("passed\n")
