"""Use of caches in the source: `kubist.caching` for all keys from clients, exceptions only with a reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import kubist
from kubist.schema import catalog

SOURCE = Path(kubist.__file__).parent

FIXED = {
    # The keys are names in a catalog that ships with the package; other names raise an error or never get here.
    "discovery/descriptions.py:_module",
    "discovery/openapi.py:_built_in_v3",
    "tables/columns.py:table_of",
    "resources/routes.py:_served",
    "schema/catalog.py:_scalar",
    "schema/catalog.py:by_name",
    # The keys are served resources and their schemas, compared by identity, and fields that strategies name.
    "patch/apply/created.py:creator",
    "patch/apply/empty.py:empty",
    "patch/apply/sets.py:dotted",
    "patch/apply/typed.py:type_of",
    "verbs/body.py:expected",
}
"""Functions with parameters that may use functools.cache or lru_cache."""

STORED = {
    # The keys are stored objects, so what is stored bounds them.
    "objectclient.py:parsed",
    "control/garbagecollector.py:_removed",
    "crd/stored.py:encode",
    # Empties one bounded cache together with another.
    "filters/rbac.py:grants",
}
"""Functions that empty a collection by hand when it is full."""


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if name == "caching.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield f"{name}:{node.name}", node


def _is_unbounded(decorator: ast.expr) -> bool:
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(name).rpartition(".")[2] in ("cache", "lru_cache")


def _takes_arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    arguments = function.args
    return bool(arguments.posonlyargs or arguments.args or arguments.vararg or arguments.kwonlyargs)


def test_functools_caches_have_fixed_keys() -> None:
    found = {
        name
        for name, function in functions()
        if any(map(_is_unbounded, function.decorator_list)) and _takes_arguments(function)
    }
    assert found == FIXED, "use kubist.caching.bounded_cache, or give the reason here"


def test_functools_caches_are_used_only_as_decorators() -> None:
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        decorators = {
            id(part)
            for node in ast.walk(tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            for decorator in node.decorator_list
            for part in ast.walk(decorator)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _is_unbounded(node) and id(node) not in decorators:
                raise AssertionError(f"{path.name}:{node.lineno}: use kubist.caching.ComputedCache")


def test_no_cache_is_emptied_by_hand() -> None:
    found = set()
    for name, function in functions():
        for node in ast.walk(function):
            if isinstance(node, ast.If) and "len(" in ast.unparse(node.test):
                calls = [
                    ast.unparse(c.func)
                    for part in node.body
                    for c in ast.walk(part)
                    if isinstance(c, ast.Call)
                ]
                if any(call.endswith((".clear", ".popitem")) for call in calls):
                    found.add(name)
    assert found == STORED, "use kubist.caching.BoundedCache, or give the reason here"


def test_schemas_of_invented_versions_are_not_cached() -> None:
    """DeleteOptions exist in every group and version, including invented ones."""
    assert catalog.schema_for("made.up", "v7", "DeleteOptions") is catalog.schema_for(
        "", "v1", "DeleteOptions"
    )
    assert not hasattr(catalog.schema_for, "cache_info")
