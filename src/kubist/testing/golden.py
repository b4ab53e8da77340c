"""Golden files: normalised requests that a test expects."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from kubist.model.meta.object import Object
from kubist.testing.normalised import normalise

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

UPDATE = "KUBIST_UPDATE_GOLDEN"
"""Environment variable that makes `match` write the files. `pytest --kubist-update-golden` sets it."""
MOST_LINES = 200
"""Lines of a diff that are shown."""


def match(path: Path, lines: list[Object], *, responses: bool) -> None:
    """Compares requests with a golden file. Raises AssertionError with a diff."""
    text = normalise(lines, responses=responses)
    if os.environ.get(UPDATE):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return
    if not path.exists():
        raise AssertionError(
            f"the golden file {path} does not exist; `pytest --kubist-update-golden` creates it"
        )
    expected = path.read_text()
    if text == expected:
        return
    shown = list(
        difflib.unified_diff(expected.splitlines(), text.splitlines(), str(path), "recorded", lineterm="")
    )
    if len(shown) > MOST_LINES:
        shown = [*shown[:MOST_LINES], f"… and {len(shown) - MOST_LINES} more lines"]
    raise AssertionError(
        f"the requests differ from the golden file {path}; `pytest --kubist-update-golden` updates it\n"
        + "\n".join(shown)
    )
