"""The Chinese README has the structure, the code and the figures of the English one."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT, blocks, code_spans, heading_levels, images, links, prose, tables

ENGLISH = ROOT / "README.md"
CHINESE = ROOT / "README.zh-CN.md"
_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")


def figures(text: str) -> list[str]:
    """Numbers of a text, sorted, because the order of words differs between languages."""
    return sorted(_FIGURE.findall(text))


def test_each_language_links_to_the_other() -> None:
    assert CHINESE.name in links(ENGLISH)
    assert ENGLISH.name in links(CHINESE)


def test_headings_have_the_same_levels() -> None:
    assert heading_levels(CHINESE) == heading_levels(ENGLISH) != []


def test_code_blocks_are_identical() -> None:
    english = [(block.language, block.text) for block in blocks(ENGLISH)]
    assert [(block.language, block.text) for block in blocks(CHINESE)] == english != []


def test_code_in_the_text_is_the_same() -> None:
    assert sorted(code_spans(CHINESE)) == sorted(code_spans(ENGLISH)) != []


def test_links_have_the_same_targets() -> None:
    english = set(links(ENGLISH)) - {CHINESE.name}
    assert set(links(CHINESE)) - {ENGLISH.name} == english != set()


def test_images_are_the_same() -> None:
    assert images(CHINESE) == images(ENGLISH) != []


def test_tables_have_the_same_rows_columns_and_figures() -> None:
    def shape(rows: list[str]) -> list[tuple[int, list[str]]]:
        return [(row.count("|"), figures(row)) for row in rows]

    english = [shape(rows) for rows in tables(ENGLISH)]
    assert [shape(rows) for rows in tables(CHINESE)] == english != []


def test_figures_of_the_text_are_the_same() -> None:
    assert figures(prose(CHINESE)) == figures(prose(ENGLISH)) != []
