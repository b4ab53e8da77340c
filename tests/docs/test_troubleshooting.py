"""The messages of the troubleshooting page are messages of the code."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import DOCS, ROOT

PAGE = DOCS / "troubleshooting.md"
OURS = ("Starting", "Workloads", "Tests")
"""Sections with messages of Kubist. The others have messages of kubectl and of Kubernetes."""
OF_PYTEST = "fixture 'cluster' not found"


def messages() -> list[str]:
    """Code in the first column of the tables."""
    sections = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    rows = [
        row.split(" | ")[0]
        for section in sections
        if section.startswith(OURS)
        for row in re.findall(r"^\| (.*)", section, re.MULTILINE)
    ]
    found = [span for row in rows for span in re.findall(r"`([^`]+)`", row)]
    return [span for span in found if span != OF_PYTEST and not span.startswith(("kubectl ", "Pending"))]


@pytest.fixture(scope="module")
def source() -> str:
    return "\n".join(path.read_text() for path in (ROOT / "src/kubist").rglob("*.py"))


def test_page_has_messages() -> None:
    assert len(messages()) > 20


@pytest.mark.parametrize("message", messages())
def test_message_is_in_the_code(message: str, source: str) -> None:
    parts = [part.strip(' ";:,?') for part in message.replace("no Deployment", "no …").split("…")]
    assert [part for part in parts if part not in source] == []
