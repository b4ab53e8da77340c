"""The layers of docs/architecture.md: kept by the source, and every kind of upward import is found. Files are short."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


def _tool() -> Any:
    spec = importlib.util.spec_from_file_location("check_layers", ROOT / "tools/check_layers.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check = _tool()
ORDER = ["kubist", "high", "low"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A package of two layers, `high` above `low`, without an upward import."""
    for name, text in {
        "__init__.py": "from kubist.high import top\n",
        "high/__init__.py": "",
        "high/top.py": "from kubist.low import bottom\n",
        "low/__init__.py": "",
        "low/bottom.py": "from . import other\n",
        "low/other.py": "",
    }.items():
        path = tmp_path / "kubist" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_no_import_of_the_source_goes_up() -> None:
    order = check.layers((ROOT / "docs/architecture.md").read_text())
    assert len(order) > 30
    assert list(check.upward(ROOT / "src", order)) == []


def test_downward_imports_pass(source: Path) -> None:
    assert list(check.upward(source, ORDER)) == []


@pytest.mark.parametrize(
    "statement",
    [
        "from kubist.high import top",
        "from kubist.high.top import something",
        "import kubist.high.top",
        "from ..high import top",
        "from kubist import high",
        "def f():\n    from kubist.high import top",
        "async def f():\n    import kubist.high",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from kubist.high import top",
        "import kubist",
        "from kubist import __version__",
    ],
)
def test_upward_import_is_found(source: Path, statement: str) -> None:
    (source / "kubist/low/bottom.py").write_text(statement + "\n")
    (found,) = check.upward(source, ORDER)
    line = statement.count("\n") + 1
    assert found.startswith(f"kubist/low/bottom.py:{line}: low imports kubist")


def test_package_that_the_table_lacks_is_found(source: Path) -> None:
    found = list(check.upward(source, ["kubist", "high"]))
    assert "docs/architecture.md: the table of packages lacks `low`" in found


def test_package_that_does_not_exist_is_found(source: Path) -> None:
    (found,) = check.upward(source, [*ORDER, "gone"])
    assert found == "docs/architecture.md: the table of packages has `gone`, which does not exist"


def test_package_that_the_table_has_twice_is_found(source: Path) -> None:
    (found,) = check.upward(source, [*ORDER, "low"])
    assert found == "docs/architecture.md: the table of packages has `low` twice"


def test_packages_of_a_floor_are_layers(source: Path) -> None:
    for name in ("one", "other"):
        (source / "kubist/ground" / name).mkdir(parents=True)
        (source / "kubist/ground" / name / "__init__.py").write_text("")
    (source / "kubist/ground/__init__.py").write_text("")
    order = [*ORDER, "ground/one", "ground/other"]
    assert list(check.upward(source, order)) == []
    (source / "kubist/ground/other/up.py").write_text("import kubist.ground.one")
    (found,) = check.upward(source, order)
    assert found == "kubist/ground/other/up.py:1: ground/other imports kubist.ground.one, which is above it"
    (source / "kubist/ground/other/up.py").write_text("import kubist.low.bottom")
    (found,) = check.upward(source, order)
    assert found == "kubist/ground/other/up.py:1: ground/other imports kubist.low.bottom, which is above it"


def test_floor_that_others_divide_is_found(source: Path) -> None:
    for name in ("ground/one", "ground/other", "cellar/one"):
        (source / "kubist" / name).mkdir(parents=True)
        (source / "kubist" / name / "__init__.py").write_text("")
    order = [*ORDER, "ground/one", "cellar/one", "ground/other"]
    (found,) = check.upward(source, order)
    assert found == "docs/architecture.md: rows of the floor `ground` do not follow each other"


def test_order_is_the_table_of_packages() -> None:
    table = "| package | x |\n|---|---|\n| `b` | x |\n| `a/e` | `c` |\n"
    document = f"# A\n\n## Packages\n\nText.\n\n{table}\n## B\n| `d` | x |\n"
    assert check.layers(document) == ["b", "a/e"]


def test_imports_in_functions_of_the_source_give_their_reason() -> None:
    assert list(check.unexplained(ROOT / "src")) == []


@pytest.mark.parametrize(
    "body",
    [
        "    # Saves start-up time: seldom needed.\n    import json",
        "    # Saves start-up time.\n    import json\n    import re",
        "    import json  # saves start-up time",
        "    # Saves start-up time:\n    # seldom.\n    from json import (\n        loads,\n    )\n    import re",
    ],
)
def test_import_in_a_function_with_a_reason_passes(source: Path, body: str) -> None:
    (source / "kubist/low/other.py").write_text(f"def f():\n{body}\n")
    assert list(check.unexplained(source)) == []


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("    import json", 2),
        ("    # A comment.\n    import json", 3),
        ("    # Saves start-up time.\n    import json\n\n    import re", 5),
    ],
)
def test_import_in_a_function_without_a_reason_is_found(source: Path, body: str, line: int) -> None:
    (source / "kubist/low/other.py").write_text(f"def f():\n{body}\n")
    (found,) = check.unexplained(source)
    assert found.startswith(f"kubist/low/other.py:{line}: import in a function")


def test_no_python_file_has_more_than_500_lines() -> None:
    folders = ("src", "tests", "tools", "benchmarks")
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines())
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
    }
    assert len(lengths) > 500
    assert {path: lines for path, lines in lengths.items() if lines > 500} == {}
