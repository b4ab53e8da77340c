"""The CEL expressions of policies and match conditions: what they may refer to, and what they must give.

The kinds of this room ask `check` when expressions are written; admission compiles the same way to use them.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, Literal

from kubist.crd import cel
from kubist.crd.cel import BOOL, DYN, STRING, CompileError, Program, Type, list_of, object_type
from kubist.kinds.admissionregistration import variables as declared
from kubist.meta import fields
from kubist.meta.fields import FieldError

Result = Literal["bool", "string", "string or null", "any", "ApplyConfiguration", "JSONPatch"]

_RESULTS: dict[Result, tuple[Type, ...]] = {
    "bool": (BOOL,),
    "string": (STRING,),
    "string or null": (STRING, Type("null", "null")),
    "any": (),
    "ApplyConfiguration": (object_type(declared.OBJECT, {}),),
    "JSONPatch": (list_of(declared.JSON_PATCH),),
}


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


@functools.lru_cache(maxsize=256)
def _environment(environment: Environment) -> cel.Environment:
    """The environment as the language knows it."""
    known: dict[str, Type] = {
        "object": DYN,
        "oldObject": DYN,
        "namespaceObject": declared.NAMESPACE,
        "request": declared.REQUEST,
    }
    if environment.variables:
        known["variables"] = object_type("kubernetes.variables", _variable_types(environment))
    functions: dict[str, declared.Function] = {}
    if environment.params:
        known["params"] = DYN
    if environment.authorizer:
        known["authorizer"] = declared.AUTHORIZER
    functions |= declared.AUTHORIZER_FUNCTIONS
    if environment.patch_types:
        functions |= declared.PATCH_FUNCTIONS
    made = cel.Environment(known, functions)
    if environment.patch_types:
        made.variables = declared.PatchTypes(known)
    return made


def _variable_types(environment: Environment) -> dict[str, Type]:
    """The type of each variable, as it was defined: seeing those before it, and no types of patches."""
    types: dict[str, Type] = {}
    seen = replace(environment, patch_types=False, variables=())
    for name, expression in environment.variables:
        try:
            types[name] = compile(expression, seen, "any").type
        except CompileError:
            types[name] = DYN
        seen = seen.defining(name, expression)
    return types


@functools.lru_cache(maxsize=1024)
def compile(expression: str, environment: Environment, result: Result) -> Program:
    """The expression ready to be evaluated; CompileError in the words of the reference."""
    try:
        program = cel.compile(expression, _environment(environment))
    except CompileError as error:
        raise CompileError(f"compilation failed: {error.located(expression)}") from None
    wanted = _RESULTS[result]
    if wanted and program.type not in wanted:
        shown = [_shown(type_) for type_ in wanted]
        what = shown[0] if len(shown) == 1 else f"one of [{' '.join(shown)}]"
        raise CompileError(f"must evaluate to {what} but got {_shown(program.type)}")
    return program


def _shown(type_: Type) -> str:
    return "null_type" if type_.kind == "null" else str(type_)


def check(expression: str, environment: Environment, result: Result) -> str | None:
    """Compile: what is wrong with the expression, or None."""
    try:
        compile(expression, environment, result)
    except CompileError as error:
        return error.message
    return None


def validate(
    expression: str, path: str, environment: Environment, result: Result, *, shown: Any = None
) -> list[FieldError]:
    """`check`, as errors of a field that holds the expression (or `shown`, where that differs)."""
    wrong = check(expression, environment, result)
    return [fields.invalid(path, expression if shown is None else shown, wrong)] if wrong else []
