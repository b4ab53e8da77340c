#!/usr/bin/env python3
"""Put the help of every command into docs/cli.md, below the lines `<!-- help: COMMAND -->`.

    python tools/make_cli.py

`tests/cli/test_cli_page.py` compares the page with the commands.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path

from kubist.cli import main

TARGET = Path(__file__).parent.parent / "docs" / "cli.md"
BLOCK = re.compile(r"(<!-- help: (.*?) -->\n\n```text\n).*?(```\n)", re.DOTALL)
LONG = ("apiserver",)
"""Commands whose flags are listed on another page."""


def page(text: str) -> str:
    """The page with the present help of every command."""
    return BLOCK.sub(lambda found: found[1] + shown(found[2]) + found[3], text)


def shown(command: str) -> str:
    """Help of a command; `kubist` stands for the program itself."""
    output = io.StringIO()
    before = os.environ.pop("FORCE_COLOR", None)
    try:
        with contextlib.redirect_stdout(output):
            main(["help"] if command == "kubist" else ["help", command])
    finally:
        if before is not None:
            os.environ["FORCE_COLOR"] = before
    text = output.getvalue()
    return text.partition("\n\nAdmission flags:")[0] + "\n" if command in LONG else text


if __name__ == "__main__":
    TARGET.write_text(page(TARGET.read_text()))
