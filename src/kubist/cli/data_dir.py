"""Data directory of `kubist serve`, which other commands find by the same flag."""

from __future__ import annotations

import os
from pathlib import Path

from kubist.cli.flag_list import Flag, FlagError

DATA_DIR = Flag(
    "data-dir", "string", "", "Data directory of the server (default: kubist in the user's data directory)."
)


def default_data_dir() -> Path:
    """Default data directory of `serve`: kubist in XDG_DATA_HOME."""
    home = os.environ.get("XDG_DATA_HOME")
    if home:
        return Path(home) / "kubist"
    try:
        return Path.home() / ".local/share/kubist"
    except RuntimeError:
        raise FlagError(
            "this user has no home directory: set HOME, or choose a directory with --data-dir"
        ) from None


def data_dir(values: dict[str, list[str]]) -> Path:
    """Data directory that the flags name, or the default."""
    value = values.get("data-dir", [""])[-1]
    return Path(value) if value else default_data_dir()
