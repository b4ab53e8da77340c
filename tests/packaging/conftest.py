from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.processes import ROOT
from tests.packaging.installed import build, lend_dependencies, new_environment, run


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Temporary home directory of a user."""
    return tmp_path


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the sdist and the wheel of this repository."""
    where = tmp_path_factory.mktemp("dist")
    build(ROOT, where, "sdist", "wheel")
    return where


@pytest.fixture(scope="session")
def wheel(distributions: Path) -> Path:
    (found,) = distributions.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def sdist(distributions: Path) -> Path:
    (found,) = distributions.glob("*.tar.gz")
    return found


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Interpreter of an environment with only the wheel in it. Its dependencies are those of this environment, so that
    no network is needed."""
    python = new_environment(tmp_path_factory.mktemp("installed") / "venv")
    run(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel)
    lend_dependencies(python)
    return python
