"""The changelog has a section for the next version and one, with its date, for this version."""

from __future__ import annotations

import re

from kubist.base.version import __version__
from tests.cli.processes import ROOT


def test_changelog_begins_with_unreleased_and_this_version() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(__version__)} \(\d{{4}}-\d\d-\d\d\)", headings[1])
