"""Checks the floors and layers: a package imports only from packages below it in the table of docs/architecture.md.

    python tools/check_layers.py

The packages of a floor are adjacent rows `FLOOR/PACKAGE`.

Every import counts: at the top of a module, in a function, and under TYPE_CHECKING. There is no list of exceptions.
An import in a function must have a comment with the word "start-up", above it or on its line, because start-up time
is the only reason for one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = "kubist"
_ROW = re.compile(r"\| `([a-z_/]+)` \|")


def layers(document: str) -> list[str]:
    """Names of the table under "## Packages", top to bottom."""
    section = document.partition("\n## Packages\n")[2].partition("\n## ")[0]
    return _ROW.findall(section)


def layer_of(module: str, order: list[str]) -> str:
    """The row of a module: `kubist.base.http.tls.contexts` is in `base/http`, `kubist.cli.serve` in `cli`, `kubist` is
    itself."""
    parts = module.split(".")
    if len(parts) > 2 and any(name.startswith(f"{parts[1]}/") for name in order):
        package = "/".join(parts[1:3])
        return parts[1] if package not in order and parts[1] in order else package
    return parts[min(1, len(parts) - 1)]


def floors(order: list[str]) -> list[str]:
    """Floors of the table, top to bottom. A floor occurs twice if its rows are not adjacent."""
    names = [name.partition("/")[0] for name in order if "/" in name]
    return [name for index, name in enumerate(names) if index == 0 or names[index - 1] != name]


def modules(source: Path) -> dict[str, Path]:
    """All modules below a folder by dotted name."""
    found = {}
    for path in sorted((source / PACKAGE).rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(module: str, path: Path, node: ast.Import | ast.ImportFrom, known: dict[str, Path]) -> set[str]:
    """The modules of the package that a statement imports."""
    if isinstance(node, ast.Import):
        names = {alias.name for alias in node.names}
    else:
        base = node.module or ""
        if node.level:
            parts = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
            parts = parts[: len(parts) - node.level + 1]
            base = ".".join([*parts, base] if base else parts)
        names = {f"{base}.{alias.name}" if f"{base}.{alias.name}" in known else base for alias in node.names}
    return {name for name in names if name in known}


def in_functions(tree: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    """The import statements of functions, in the order of their lines."""
    functions = (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    nodes = (node for function in functions for node in ast.walk(function))
    found = {node.lineno: node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))}
    return [found[line] for line in sorted(found)]


def explained(statement: ast.stmt, lines: list[str], with_reason: set[int]) -> bool:
    """Whether a comment gives the reason: on the first line of the statement, above it, or above its block."""
    line = statement.lineno
    if "start-up" in lines[line - 1].partition("#")[2] or line - 1 in with_reason:
        return True
    above = line - 2
    while above >= 0 and lines[above].lstrip().startswith("#"):
        if "start-up" in lines[above]:
            return True
        above -= 1
    return False


def upward(source: Path, order: list[str]) -> Iterator[str]:
    """Imports of packages that are not below the importing one, and differences between table and folders."""
    known = modules(source)
    rank = {name: index for index, name in enumerate(order)}
    packages = {name.partition("/")[0] for name in order if "/" in name} - set(order)
    present = {layer_of(module, order) for module in known} - packages
    for name in sorted(present - rank.keys()):
        yield f"docs/architecture.md: the table of packages lacks `{name}`"
    for name in sorted(rank.keys() - present):
        yield f"docs/architecture.md: the table of packages has `{name}`, which does not exist"
    for name in sorted({name for name in order if order.count(name) > 1}):
        yield f"docs/architecture.md: the table of packages has `{name}` twice"
    split = floors(order)
    for name in sorted({name for name in split if split.count(name) > 1}):
        yield f"docs/architecture.md: rows of the floor `{name}` do not follow each other"
    for module, path in known.items():
        tree = ast.parse(path.read_text())
        mine = layer_of(module, order)
        where = path.relative_to(source)
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for target in sorted(imported(module, path, node, known)):
                    other = layer_of(target, order)
                    if other != mine and rank.get(other, -1) <= rank.get(mine, -1):
                        yield f"{where}:{node.lineno}: {mine} imports {target}, which is above it"


def unexplained(source: Path) -> Iterator[str]:
    """Imports in functions that no comment explains."""
    for path in modules(source).values():
        text = path.read_text()
        lines = text.splitlines()
        with_reason: set[int] = set()
        for statement in in_functions(ast.parse(text)):
            if explained(statement, lines, with_reason):
                with_reason.update(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
            else:
                yield (
                    f"{path.relative_to(source)}:{statement.lineno}: import in a function; move it to the top, or say "
                    "in a comment why it saves start-up time"
                )


def main() -> int:
    order = layers((ROOT / "docs/architecture.md").read_text())
    found = [*upward(ROOT / "src", order), *unexplained(ROOT / "src")]
    print("\n".join(found) or "layers: no import goes up")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
