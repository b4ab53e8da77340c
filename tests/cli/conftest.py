from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.cli.test_store import value, write


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Temporary home directory of a user."""
    return tmp_path


@pytest.fixture
def temporary(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Directory for temporary files."""
    directory = home / "tmp"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    return directory


@pytest.fixture
def store(home: Path) -> Path:
    """Data directory with keys and a store of two objects."""
    data = home / "data"
    (data / "pki").mkdir(parents=True)
    (data / "pki" / "ca.crt").write_text("certificate")
    (data / "pki" / "ca.key").write_text("key")
    asyncio.run(write(data, a=value("a"), b=value("b")))
    return data
