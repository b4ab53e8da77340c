"""Where the CEL expressions of policies and match conditions are compiled when they are written.

The kinds of this room know which variables an expression may use and what it must give, and ask `check`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from kubist.meta import fields
from kubist.meta.fields import FieldError

Result = Literal["bool", "string", "string or null", "any", "ApplyConfiguration", "JSONPatch"]


@dataclass(slots=True, frozen=True)
class Environment:
    """What an expression sees besides `object`, `oldObject`, `request` and `namespaceObject`."""

    params: bool = False
    authorizer: bool = True
    patch_types: bool = False
    """The types `Object` and `JSONPatch`, with which mutations are written."""
    variables: tuple[tuple[str, str], ...] = ()
    """Named expressions that are seen as `variables.<name>`, in the order of their definition."""

    def defining(self, name: str, expression: str) -> Environment:
        return replace(self, variables=(*self.variables, (name, expression)))


def check(expression: str, environment: Environment, result: Result) -> str | None:
    """Compile: what is wrong with the expression, or None. Nothing is until an expression can be compiled."""
    return None


def validate(
    expression: str, path: str, environment: Environment, result: Result, *, shown: Any = None
) -> list[FieldError]:
    """`check`, as errors of a field that holds the expression (or `shown`, where that differs)."""
    wrong = check(expression, environment, result)
    return [fields.invalid(path, expression if shown is None else shown, wrong)] if wrong else []
