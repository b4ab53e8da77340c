"""Markdown pages of the repository: their links, headings and code blocks."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_FENCE = re.compile(r"^( *)```(\S*)[^\n]*\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_IMAGE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_LEVEL = re.compile(r"^(#+) ", re.MULTILINE)
_TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")


class Block(NamedTuple):
    """Code block of a page."""

    page: str
    number: int
    language: str
    text: str


def pages() -> list[Path]:
    """Every page that users read."""
    tops = [path for path in ROOT.glob("*.md") if path.name != "LICENSE"]
    return sorted([*tops, *DOCS.rglob("*.md"), *(ROOT / "examples").rglob("README*.md")])


def blocks(path: Path) -> list[Block]:
    name = path.relative_to(ROOT).as_posix()
    return [
        Block(name, number, found[2], found[3])
        for number, found in enumerate(_FENCE.finditer(path.read_text()))
    ]


def links(path: Path) -> list[str]:
    """Targets of the links of a page, outside of code."""
    return _LINK.findall(_prose(path))


def images(path: Path) -> list[str]:
    """Files of the images of a page."""
    return _IMAGE.findall(_prose(path))


def headings(path: Path) -> list[str]:
    return _HEADING.findall(_unfenced(path))


def heading_levels(path: Path) -> list[int]:
    return [len(marks) for marks in _LEVEL.findall(_unfenced(path))]


def tables(path: Path) -> list[list[str]]:
    """Rows of each table of a page, with its heading."""
    return [table.splitlines() for table in _TABLE.findall(_unfenced(path))]


def code_spans(path: Path) -> list[str]:
    """Code inside the text of a page."""
    return _CODE.findall(_unfenced(path))


def anchors(path: Path) -> set[str]:
    """Anchors that the headings of a page have, on hosting sites and on our own."""
    found: set[str] = set()
    for heading in headings(path):
        base = anchor = _anchor(heading)
        repeated = 0
        while anchor in found:
            repeated += 1
            anchor = f"{base}-{repeated}"
        found.add(anchor)
    return found


def _anchor(heading: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    text = unicodedata.normalize("NFC", text).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def prose(path: Path) -> str:
    """Text of a page without code and without the targets of links."""
    return re.sub(r"\]\([^)\s]+\)", "]", _prose(path))


def _prose(path: Path) -> str:
    return re.sub(r"`[^`\n]*`", "", _unfenced(path))


def _unfenced(path: Path) -> str:
    return _FENCE.sub("", path.read_text())
