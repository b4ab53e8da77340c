"""Archives of tests."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: Path, target: Path) -> None:
    """Unpacks a tar file. Python 3.11.4 has the argument `filter`, Debian 12 has Python 3.11.2 without it."""
    with tarfile.open(archive) as opened:
        opened.extraction_filter = getattr(tarfile, "data_filter", None)
        opened.extractall(target)
