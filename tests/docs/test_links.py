"""Links between pages lead to files and headings that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, anchors, links, pages


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    broken = [link for link in links(path) if not leads_somewhere(path, link)]
    assert broken == []


def leads_somewhere(page: Path, link: str) -> bool:
    """Whether the file and the heading of a link exist. Addresses of other sites are not requested."""
    if link.startswith(("https://", "mailto:")):
        return True
    name, _, anchor = link.partition("#")
    target = (page.parent / name).resolve() if name else page
    inside = DOCS if page.is_relative_to(DOCS) else ROOT  # the site has only docs/
    if not target.exists() or not target.is_relative_to(inside):
        return False
    return not anchor or (target.suffix == ".md" and anchor in anchors(target))
