"""Name of this program in commands that it suggests."""

from __future__ import annotations

import os
import shlex
import sys


def program() -> str:
    """`kubist` if the shell finds this program by that name, otherwise its path, such as `.venv/bin/kubist`."""
    # Saves start-up time: only suggestions need it.
    import shutil

    started = sys.argv[0]
    if os.path.basename(started) != "kubist" or not os.path.exists(started):
        return "kubist"  # `python -m kubist`
    found = shutil.which("kubist")
    if found is not None and os.path.samefile(found, started):
        return "kubist"
    return shlex.quote(started)
