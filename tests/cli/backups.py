"""Commands for tests of backups."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.cli.processes import kubist


def back_up(home: Path, data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return kubist("backup", f"--data-dir={data}", f"--file={home / 'backup'}", *arguments, home=home)


def restore(home: Path, data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return kubist("restore", f"--data-dir={data}", f"--file={home / 'backup'}", *arguments, home=home)


def content(directory: Path) -> dict[str, bytes]:
    """All files except those that SQLite creates when a store is read."""
    found = (path for path in directory.rglob("*") if path.is_file() and "kubist.db-" not in path.name)
    return {str(path): path.read_bytes() for path in found}


def one_line(result: subprocess.CompletedProcess[str], *words: str, code: int = 1) -> None:
    assert result.returncode == code, result
    lines = result.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("kubist: "), result.stderr
    for word in words:
        assert word in lines[0]
