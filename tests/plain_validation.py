"""Switches `caching.skip_validated` off, so that tests can compare with plain validation."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import FunctionType

from kubist.base.caching import skip_validated

_CODE = skip_validated(str)(lambda _value: []).__code__


def _is_decorated(function: FunctionType) -> bool:
    """Whether skip_validated made the function. Its code is another object where coverage is measured."""
    code = function.__code__
    return (code.co_filename, code.co_qualname) == (_CODE.co_filename, _CODE.co_qualname)


def uses() -> dict[str, list[tuple[str, str]]]:
    """Decorated functions of all loaded modules, by name, with the module and attribute of every reference."""
    found: dict[str, list[tuple[str, str]]] = {}
    for place, module in list(sys.modules.items()):
        if place.startswith("kubist."):
            for name, value in vars(module).items():
                if isinstance(value, FunctionType) and _is_decorated(value):
                    origin = f"{value.__module__.removeprefix('kubist.')}.{value.__name__}"
                    found.setdefault(origin, []).append((place, name))
    return found


@contextlib.contextmanager
def plain_validation() -> Iterator[None]:
    """Runs every decorated function itself, without its cache."""
    replaced = [
        (sys.modules[place], name, getattr(sys.modules[place], name))
        for references in uses().values()
        for place, name in references
    ]
    for module, name, decorated in replaced:
        setattr(module, name, decorated.__wrapped__)
    try:
        yield
    finally:
        for module, name, decorated in replaced:
            setattr(module, name, decorated)
