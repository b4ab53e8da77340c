"""CEL expressions that select devices: compiled, type-checked and cost-estimated when they are written."""

from __future__ import annotations

import functools

from kubist.api.resources.strategy import Errors
from kubist.model import cel
from kubist.model.cel import BOOL, DYN, STRING, map_of, object_type
from kubist.model.cel.types import QUANTITY
from kubist.model.meta import fields
from kubist.model.meta.object import Object

_MAX_LENGTH = 10 * 1024
_MAX_COST = 1_000_000

_DEVICE = object_type(
    "kubernetes.DRADevice",
    {
        "driver": STRING,
        "allowMultipleAllocations": BOOL,
        "attributes": map_of(STRING, map_of(STRING, DYN)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    },
)
_SIZES = {"attributes": 32, "capacity": 32, "driver": 63}
_DOMAIN_LENGTH, _NAME_LENGTH, _VALUE_LENGTH = 63, 32, 64


@functools.cache
def _environment() -> cel.Environment:
    return cel.Environment({"device": _DEVICE}, bindings=True, aside=True)


def _size_of(path: tuple[str, ...]) -> int | None:
    """Maximum number of elements or characters of a part of a device, for the cost estimate."""
    if path[:1] != ("device",) or len(path) < 2:
        return None
    below = path[2:]
    if not below:
        return _SIZES.get(path[1])
    if below[-1] == "@keys":
        return _DOMAIN_LENGTH if len(below) == 1 else _NAME_LENGTH
    return _SIZES.get(path[1]) if len(below) == 1 else _VALUE_LENGTH


def validate_selector(selector: Object, path: str) -> Errors:
    source = selector.get("cel")
    if source is None:
        return [fields.required(f"{path}.cel")]
    expression = source.get("expression", "")
    path = f"{path}.cel.expression"
    if len(expression.encode()) > _MAX_LENGTH:
        return [fields.too_long(path, _MAX_LENGTH)]
    try:
        program = cel.compile(expression, _environment())
    except cel.CompileError as error:
        return [fields.invalid(path, expression, f"compilation failed: {error.located(expression)}")]
    if program.type not in (BOOL, DYN):
        wrong = f"must evaluate to bool or the unknown type, not {program.type}"
        return [fields.invalid(path, expression, wrong)]
    if program.cost(_size_of).most > _MAX_COST:
        return [fields.forbidden(path, "too complex, exceeds cost limit")]
    return []
