from __future__ import annotations

from pathlib import Path

import pytest


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
