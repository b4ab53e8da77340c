"""The picture of docs/architecture.md has the packages of its table."""

from __future__ import annotations

import asyncio
import importlib
import re
from typing import Any

import pytest

from tests.docs.pages import DOCS, ROOT


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("make_architecture")


def test_picture_has_every_package(maker: Any) -> None:
    order = maker.check_layers.layers((DOCS / "architecture.md").read_text())
    packages = [package.split("/")[-1] for floor in maker.floors(order) for package in floor.packages]
    labels = re.findall(r'class="label"[^>]*>([^<]+)<', (DOCS / "architecture.svg").read_text())
    assert labels == packages, "run: python tools/make_architecture.py"


def test_way_of_a_request_begins_at_the_socket_and_reaches_the_store(maker: Any) -> None:
    order = maker.check_layers.layers((DOCS / "architecture.md").read_text())
    way = asyncio.run(maker.record(order))
    steps = ("base/http", "api/application", "api/filters", "api/verbs", "api/kinds", "storage")
    assert [package for package in way if package in steps] == list(steps)


def test_every_named_module_exists() -> None:
    named = set(re.findall(r"`([\w/]+/[\w/]+\.py)`", (DOCS / "architecture.md").read_text()))
    assert len(named) > 40
    assert [
        path
        for path in sorted(named)
        if not any((root / path).is_file() for root in (ROOT / "src/kubist", ROOT))
    ] == []
