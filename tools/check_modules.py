"""Checks the modules of src/kubist: their names, their number per directory, and that none keeps the state of a server.

    python tools/check_modules.py

- **Names.** A module name of several words has underscores: `job_backoff`. Types, kinds, admission plugins and the
  names in `WORDS` stay one word, as Kubernetes writes them. Two modules of a directory do not differ only in their
  ending (`fault`, `faults`).
- **Directories.** A directory has at most 25 modules. The directories of `LOOKUPS` may have more, because their files
  are found by name: a kind, a plugin, a control loop, a command.
- **State.** An empty container or a weak dictionary at module level is state of the process. It outlives every server,
  and a process may run many servers. A comment with the words "of the process" says why that is right.
- **Bindings.** A module binds a name once. Two constants of one name would change the functions above the second one.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
LARGEST_ROOM = 25
LOOKUPS = {
    "api/admission/plugins": "one file for each admission plugin",
    "api/kinds/core": "one file for each kind of the core group",
    "cli": "one file for each command",
    "cluster/control": "one file for each control loop",
    "cluster/control/workloads": "one file for each control loop",
}
"""Directories with more modules than others, because readers look files up by name → what a file is."""
WORDS = frozenset(
    (
        *(
            "apiserver",
            "baseline",
            "database",
            "deletecollection",
            "envtest",
            "hostport",
            "jsonpatch",
            "jsonpath",
        ),
        *("kubeconfig", "metadata", "runtime", "workload"),
    )
)
"""Names of two words that Kubernetes or the industry writes as one, besides kinds and types."""
_EMPTY = frozenset(("dict", "list", "set", "deque", "defaultdict", "OrderedDict", "Counter"))
_WEAK = frozenset(("WeakKeyDictionary", "WeakValueDictionary", "WeakSet"))
_ENDINGS = ("", "s", "es", "ed", "er", "or", "ing", "file")


def rooms(source: Path) -> dict[str, list[str]]:
    """Directory below src/kubist → names of its modules without `__init__`."""
    by_room: dict[str, list[str]] = {}
    for path in sorted(source.rglob("*.py")):
        room = path.parent.relative_to(source).as_posix()
        by_room.setdefault(room, [])
        if path.stem not in ("__init__", "__main__"):
            by_room[room].append(path.stem)
    return by_room


def crowded(by_room: dict[str, list[str]]) -> Iterator[str]:
    """Directories with too many modules, and exceptions that are not needed."""
    for room, names in by_room.items():
        if len(names) > LARGEST_ROOM and room not in LOOKUPS:
            yield f"{room}: {len(names)} modules; give those that belong together a room, at most {LARGEST_ROOM} stay"
    for room in LOOKUPS:
        if room not in by_room:
            yield f"tools/check_modules.py: LOOKUPS names {room}, which does not exist"


def homonyms(by_room: dict[str, list[str]]) -> Iterator[str]:
    """Modules of one directory whose names differ only in their ending. Directories of `LOOKUPS` and of kinds have
    given names."""
    for room, names in by_room.items():
        if room in LOOKUPS or room.startswith("api/kinds/"):
            continue
        for name in names:
            for ending in _ENDINGS[1:]:
                if name + ending in names:
                    yield f"{room}: a reader cannot tell {name}.py from {name}{ending}.py"


def kubernetes_words(source: Path) -> set[str]:
    """Names that Kubernetes writes as one word: types, kinds, resources, API groups, admission plugins."""
    types = json.loads((source / "model/schema/catalog.json").read_text("utf-8"))["types"]
    words = {name.rpartition(".")[2].lower() for name in types} | WORDS
    words |= {path.name for path in (source / "api/kinds").iterdir()}
    words |= {row[2] for row in json.loads((source / "api/resources/resources.json").read_text("utf-8"))}
    return words | {path.stem for path in (source / "api/admission/plugins").glob("*.py")}


def joined(by_room: dict[str, list[str]], given: set[str]) -> Iterator[str]:
    """Names of two words without an underscore. A part of a name counts as a word if another module's name has it."""
    parts = {part for names in by_room.values() for name in names for part in name.split("_")}
    parts |= {room.rpartition("/")[2] for room in by_room}
    words = {part for part in parts if len(part) > 2}
    for room, names in by_room.items():
        for name in names:
            for part in name.split("_"):
                if part in given:
                    continue
                for middle in range(3, len(part) - 2):
                    first, second = part[:middle], part[middle:]
                    if first in words and second in words:
                        yield f"{room}/{name}.py: write {first}_{second}, or add the word to WORDS"
                        break


def states(source: Path) -> Iterator[str]:
    """Module-level assignments of an empty or weak container that no comment explains."""
    for path in sorted(source.rglob("*.py")):
        text = path.read_text("utf-8")
        lines = text.splitlines()
        for statement in ast.parse(text).body:
            if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or not is_container(statement.value):
                continue
            line = statement.lineno
            around = lines[max(0, line - 3) : (statement.end_lineno or line) + 3]
            if not any("of the process" in comment for comment in around):
                yield (
                    f"{path.relative_to(source)}:{line}: state at module level; give it to the server, or say in a "
                    'comment why it is "of the process"'
                )


def is_container(value: ast.expr | None) -> bool:
    """Whether an expression makes a container that only later code can fill, or one that holds weak references."""
    if isinstance(value, (ast.Dict, ast.List)):
        return not (value.keys if isinstance(value, ast.Dict) else value.elts)
    if not isinstance(value, ast.Call):
        return False
    function = value.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in _WEAK or name == "defaultdict" or (name in _EMPTY and not value.args)


def rebound(source: Path) -> Iterator[str]:
    """Names that a module binds twice at its top level. Functions above would see the value of the second binding."""
    for path in sorted(source.rglob("*.py")):
        lines: dict[str, int] = {}
        for statement in ast.parse(path.read_text("utf-8")).body:
            for name in bound_names(statement):
                first = lines.setdefault(name, statement.lineno)
                if first != statement.lineno:
                    where = f"{path.relative_to(source)}:{statement.lineno}"
                    yield f"{where}: {name} is bound in line {first}, too; give one of them another name"


def bound_names(statement: ast.stmt) -> list[str]:
    """Names that a statement binds, except overloads, annotations without a value and packages (`import os.path`)."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        is_overload = any("overload" in ast.unparse(decorator) for decorator in statement.decorator_list)
        return [] if is_overload else [statement.name]
    if isinstance(statement, ast.ImportFrom):
        return [alias.asname or alias.name for alias in statement.names]
    if isinstance(statement, ast.Assign) or (
        isinstance(statement, ast.AnnAssign) and statement.value is not None
    ):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        nodes = (node for target in targets for node in ast.walk(target))
        return [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return []


def mistakes(source: Path) -> Iterable[str]:
    by_room = rooms(source)
    yield from crowded(by_room)
    yield from homonyms(by_room)
    yield from joined(by_room, kubernetes_words(source))
    yield from states(source)
    yield from rebound(source)


def main() -> int:
    found = list(mistakes(ROOT / "src/kubist"))
    print("\n".join(found) or "modules: names, rooms, state and bindings are in order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
