"""CEL expressions of fault rules, over the variable `request`."""

from __future__ import annotations

from kubist.model import cel
from kubist.model.cel import BOOL, DYN, STRING, CompileError, Program, list_of, map_of, object_type

_TEXTS = (
    *("verb", "path", "group", "version", "resource", "subresource", "namespace", "name"),
    *("user", "userAgent"),
)
FIELDS = dict.fromkeys(_TEXTS, STRING) | {
    "groups": list_of(STRING),
    "query": map_of(STRING, STRING),
    "object": DYN,
    "oldObject": DYN,
}
"""Fields of `request` and their types."""
_ENVIRONMENT = cel.Environment({"request": object_type("kubist.Request", FIELDS)})


def compile_expression(expression: str) -> Program:
    """Compiled expression. Raises CompileError."""
    program = cel.compile(expression, _ENVIRONMENT)
    if program.type not in (BOOL, DYN):
        raise CompileError(f"must evaluate to bool but got {program.type}")
    return program
