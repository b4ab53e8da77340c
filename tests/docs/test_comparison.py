"""The chart of docs/performance.md shows the figures of its table."""

from __future__ import annotations

import importlib
import re
from typing import Any

import pytest

from tests.docs.pages import DOCS, ROOT


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("make_comparison")


def test_chart_is_drawn_from_the_table(maker: Any) -> None:
    rows = maker.ratios((DOCS / "performance.md").read_text())
    assert len(rows) >= 12
    assert maker.draw(rows) == maker.TARGET.read_text(), "run: python tools/make_comparison.py"


def test_a_ratio_is_the_mean_of_its_runs(maker: Any) -> None:
    page = f"{maker.TITLE}\n\n| create | 600, 500 | 1,200, 2,000 | 2.0, 4.0 |\n| memory | 1 | 2 | 0.2 |\n\n## Next\n"
    rows = maker.ratios(page)
    assert rows == {"create": 3.0}
    assert re.findall(r">([\d.]+) ×<", maker.draw(rows)) == ["3.0"]
