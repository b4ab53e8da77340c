"""Generated pages of the documentation are those that the code makes."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest

from tests.docs.pages import DOCS, ROOT


def make_reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_reference", ROOT / "tools" / "make_reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKER = make_reference()


@pytest.mark.parametrize("page", MAKER.PAGES)
def test_page_is_up_to_date(page: str) -> None:
    made = MAKER.PAGES[page]()
    assert (DOCS / page).read_text() == made, "run: python tools/make_reference.py"
