"""envtest, the library for tests of Go controllers, with the assets of `kubist envtest`."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubist.cli.envtest import make_assets
from tests.ecosystem.installation import EXAMPLES, build, copy_sources, go_module, require, run
from tests.ecosystem.table import exercises

VERSION = "v0.24.1"
MODULE = "sigs.k8s.io/controller-runtime"
SUITES = (
    "builder",
    "cache",
    "client",
    "client/apiutil",
    "cluster",
    "controller",
    "controller/controllerutil",
    "envtest",
    "handler",
    "internal/controller",
    "internal/recorder",
    "internal/testing/controlplane",
    "manager",
    "manager/internal/integration",
    "metrics/filters",
    "reconcile",
    "source",
    "webhook",
)
"""Packages of controller-runtime whose tests start a control plane."""
DOWNLOADING = "/aggregatedDiscovery=false"
"""Tests that download a kube-apiserver v1.28 and start that one."""
ATTEMPTS = "-ginkgo.flake-attempts=3"
"""Repeats a failed spec. Some specs of `cache` and `manager` race with the server, which may win on a busy machine."""


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    directory = tmp_path_factory.mktemp("assets")
    make_assets(directory)
    return {"KUBEBUILDER_ASSETS": str(directory)}


@pytest.fixture(scope="module")
def project() -> Path:
    """Directory of the built tests of our example project."""
    require("go")
    sources = copy_sources("envtest-go", EXAMPLES)
    build(["go", "test", "-mod=mod", "-vet=off", "-c", "-o", "guestbook.test", "./controllers"], sources)
    return sources / "controllers"


@pytest.fixture(scope="module")
def controller_runtime() -> Path:
    """Directory of the sources of controller-runtime. The tests write beside their sources, so it is a copy."""
    sources = go_module(MODULE, VERSION)
    for script in sources.rglob("*.sh"):  # Modules keep no permissions.
        script.chmod(0o755)
    return sources


def test_project_pins_the_version_in_the_table() -> None:
    assert f"{MODULE} {VERSION}\n" in (EXAMPLES / "envtest-go" / "go.mod").read_text()


@exercises("envtest", VERSION, "an unmodified kubebuilder-style project")
def test_unmodified_project_passes(project: Path, assets: dict[str, str]) -> None:
    output = run(["../guestbook.test", "-test.v"], project, environment=assets | {"KUBIST_CONTROLLERS": ""})
    assert "--- PASS: TestReconcilerKeepsOnePageForEveryReplica" in output
    assert "--- SKIP: TestControllersOfKubistCleanUp" in output


@exercises("envtest", VERSION, "the same project with garbage collection and namespace deletion")
def test_project_passes_with_controllers(project: Path, assets: dict[str, str]) -> None:
    output = run(["../guestbook.test", "-test.v"], project, environment=assets | {"KUBIST_CONTROLLERS": "*"})
    assert "--- PASS: TestControllersOfKubistCleanUp" in output


@pytest.mark.parametrize(
    "suite",
    [
        pytest.param(name, marks=exercises("controller-runtime", VERSION, f"its own tests: pkg/{name}"))
        for name in SUITES
    ],
)
def test_suite_of_controller_runtime_passes(
    controller_runtime: Path, assets: dict[str, str], suite: str
) -> None:
    build(["go", "test", "-vet=off", "-c", "-o", "suite.test", f"./pkg/{suite}"], controller_runtime)
    flags = ["-test.timeout=40m", f"-test.skip={DOWNLOADING}", ATTEMPTS]
    directory = controller_runtime / "pkg" / suite
    output = run([controller_runtime / "suite.test", *flags], directory, 3000, assets)
    assert "SUCCESS!" in output or "PASS" in output
