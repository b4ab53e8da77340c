"""Arguments of methods: each is used by at least one method of that name.

ruff's rule ARG002 cannot tell an argument that an interface needs from one that nobody needs.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import kubist

ROOT = Path(kubist.__file__).parent
Method = ast.FunctionDef | ast.AsyncFunctionDef


def methods() -> Iterator[tuple[str, Method]]:
    """All methods that have a body, with their places."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.ClassDef):
                continue
            for method in node.body:
                if isinstance(method, Method) and not is_stub(method):
                    yield f"{path.relative_to(ROOT)}: {node.name}.{method.name}", method


def is_stub(method: Method) -> bool:
    """Whether the method consists of a docstring, `...`, `pass` or `raise`."""
    return all(
        isinstance(node, ast.Pass | ast.Raise)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in method.body
    )


def arguments(method: Method) -> set[str]:
    given = method.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return {one.arg for one in named if one is not None and not one.arg.startswith("_")} - {"self", "cls"}


def used(method: Method) -> set[str]:
    """Names in the body. `locals()` uses all arguments."""
    found = {node.id for part in method.body for node in ast.walk(part) if isinstance(node, ast.Name)}
    return found | arguments(method) if "locals" in found else found


def test_every_argument_is_used_by_some_method_of_the_name() -> None:
    found = list(methods())
    known: dict[str, set[str]] = defaultdict(set)
    for _, method in found:
        known[method.name] |= used(method)
    unused = [
        f"{place}({argument})"
        for place, method in found
        for argument in sorted(arguments(method) - known[method.name])
    ]
    assert unused == []
