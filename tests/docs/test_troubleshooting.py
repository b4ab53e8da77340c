"""The troubleshooting page has the error messages of the command line and of the library, and no others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT

PAGE = DOCS / "troubleshooting.md"
OURS = ("Starting", "Commands", "Library", "Workloads", "Tests")
"""Sections with messages of Kubist. The others have messages of kubectl and of Kubernetes."""
ERRORS = frozenset(
    (
        "fail", "FlagError", "StartError", "PortInUse", "StoreInUse", "StoreDamaged", "CertificateError",
        "InvalidSettings", "MissingDependency",
    )
)  # fmt: skip
"""Functions and exceptions whose first argument is a message for users."""
PACKAGES = (
    "cli",
    "clusters",
    "extras.py",
    "base/http/tls/contexts.py",
    "inprocess.py",
    "runtime",
    "server.py",
    "serving_tls.py",
)
SHORTEST = 8
"""Characters by which a message can be found on the page."""
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


def message_of(node: ast.expr) -> str:
    """Text of a literal, with `…` for its variable parts."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def raised(path: Path) -> Iterator[str]:
    """Messages of the errors of a module."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and node.args:
            function = node.func
            name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
            if name in ERRORS and (message := message_of(node.args[0])):
                yield message


def modules() -> list[Path]:
    found = [ROOT / "src/kubist" / name for name in PACKAGES]
    return [module for path in found for module in ([path] if path.is_file() else sorted(path.rglob("*.py")))]


def test_page_has_every_error_message() -> None:
    page = PAGE.read_text()
    missing = []
    for message in (message for module in modules() for message in raised(module)):
        parts = [part.strip(' ";:,?.`') for part in re.split(r"…|[:;.`] ", message.replace("`", "` "))]
        known = [part.strip() for part in parts if len(part.strip()) >= SHORTEST]
        if known and not any(part in page for part in known):
            missing.append(message)
    assert missing == []
