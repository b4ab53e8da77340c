#!/usr/bin/env python3
"""Make `src/kubist/api/settings.py`, the keyword arguments for type checkers, from the fields of `kubist.Config`.

    python tools/make_settings.py

`tests/testing/test_settings.py` compares the file with the code.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from kubist.api.config import PATHS, Config

TARGET = Path(__file__).parent.parent / "src" / "kubist" / "api" / "settings.py"
HEAD = '''\
"""Type of the keyword arguments `**settings` of `kubist.Server` and `kubist.testing.Cluster`.

Made by tools/make_settings.py from `kubist.Config`, because a type checker can read keyword arguments only from a
TypedDict. `kubist.Config` documents the fields.
"""

from __future__ import annotations

from os import PathLike
from typing import TypedDict

StrPath = str | PathLike[str]
"""File or directory."""


class Settings(TypedDict, total=False):
    """Fields of `kubist.Config`, all optional."""

'''


def module() -> str:
    lines = []
    for field in dataclasses.fields(Config):
        type_ = str(field.type)
        lines.append(
            f"    {field.name}: {type_.replace('str', 'StrPath') if field.name in PATHS else type_}\n"
        )
    return HEAD + "".join(lines)


if __name__ == "__main__":
    TARGET.write_text(module())
    print(TARGET)
