"""tools/check_modules.py: names, rooms and module state of src/kubist are in order, and every mistake is found."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


def _tool() -> Any:
    spec = importlib.util.spec_from_file_location("check_modules", ROOT / "tools/check_modules.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check = _tool()


def test_modules_of_the_source_are_in_order() -> None:
    assert list(check.mistakes(ROOT / "src/kubist")) == []


def test_rooms_are_directories_with_their_modules(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    for name in ("__init__", "names", "labels"):
        (tmp_path / "model" / f"{name}.py").write_text("")
    assert check.rooms(tmp_path)["model"] == ["labels", "names"]


def test_room_with_too_many_modules_is_found() -> None:
    names = [f"module{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    (mistake, *rest) = check.crowded({"model": names, **dict.fromkeys(check.LOOKUPS, names)})
    assert mistake.startswith("model: 26 modules;")
    assert rest == []


def test_exception_for_a_room_that_does_not_exist_is_found() -> None:
    mistakes = list(check.crowded({}))
    assert "tools/check_modules.py: LOOKUPS names cli, which does not exist" in mistakes


@pytest.mark.parametrize("pair", [("fault", "faults"), ("record", "recorder"), ("record", "recording")])
def test_names_that_differ_by_an_ending_are_found(pair: tuple[str, str]) -> None:
    (mistake,) = check.homonyms({"testbench": [*pair, "clock"]})
    assert mistake == f"testbench: a reader cannot tell {pair[0]}.py from {pair[1]}.py"


def test_kinds_have_given_names() -> None:
    assert list(check.homonyms({"api/kinds/rbac": ["role", "roles"]})) == []


def test_words_of_a_name_need_an_underscore() -> None:
    room = {"control": ["job", "backoff", "jobbackoff", "configmap", "config", "map"]}
    (mistake,) = check.joined(room, {"configmap"})
    assert mistake == "control/jobbackoff.py: write job_backoff, or add the word to WORDS"


@pytest.mark.parametrize(
    "statement",
    [
        "servers = {}",
        "servers: dict[str, int] = {}",
        "names = []",
        "names = set()",
        "names = deque(maxlen=3)",
        "states = defaultdict(list)",
        "states = weakref.WeakKeyDictionary()",
        "states: WeakSet[object] = WeakSet()",
    ],
)
def test_state_at_module_level_is_found(tmp_path: Path, statement: str) -> None:
    (tmp_path / "loop.py").write_text(f"import x\n\n\n\n{statement}\n")
    (mistake,) = check.states(tmp_path)
    assert mistake.startswith("loop.py:5: state at module level")


@pytest.mark.parametrize(
    "text",
    [
        "names = {'a': 1}",
        "names = ['a']",
        "names = frozenset()",
        "words = set(('a', 'b'))",
        "def f():\n    names = {}",
        "class A:\n    names = {}",
        "names = {}\n'''Compiled readers of the process.'''",
        "# Compiled readers of the process.\nnames = {}",
    ],
)
def test_tables_and_explained_state_pass(tmp_path: Path, text: str) -> None:
    (tmp_path / "loop.py").write_text(text + "\n")
    assert list(check.states(tmp_path)) == []


@pytest.mark.parametrize(
    "text",
    [
        "NAME = 'a'\nNAME = 'b'",
        "NAME, OTHER = 'a', 'b'\nNAME = 'c'",
        "def f(): ...\nf = 1",
        "from json import loads\nloads = None",
        "class A: ...\nA: int = 1",
    ],
)
def test_name_that_a_module_binds_twice_is_found(tmp_path: Path, text: str) -> None:
    (tmp_path / "pki.py").write_text(text + "\n")
    (mistake,) = check.rebound(tmp_path)
    assert mistake.startswith("pki.py:2: ") and "line 1" in mistake


@pytest.mark.parametrize(
    "text",
    [
        "NAME: str\nNAME = 'a'",
        "if True:\n    NAME = 1\nelse:\n    NAME = 2",
        "import os.path\nimport os",
        "def f(): NAME = 1\ndef g(): NAME = 2",
        "@overload\ndef f(a: int) -> int: ...\n@overload\ndef f(a: str) -> str: ...\ndef f(a): ...",
    ],
)
def test_names_that_a_module_binds_once_pass(tmp_path: Path, text: str) -> None:
    (tmp_path / "pki.py").write_text(text + "\n")
    assert list(check.rebound(tmp_path)) == []
