"""CEL expressions of policies and match conditions: the declared variables and the required result types.

The kinds of this package call `check` when expressions are written. Admission calls `compile` to evaluate them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any, Literal

from kubist.api.kinds.admissionregistration import variables as declared
from kubist.model import cel
from kubist.model.cel import BOOL, DYN, STRING, CompileError, Program, Type, list_of, object_type
from kubist.model.meta import fields
from kubist.model.meta.fields import FieldError

_Flags = tuple[bool, bool]
"""Key of the variables' types: whether `params` is declared, and whether `authorizer` is declared."""


class _Store:
    """Variables in the order of the policy, with the types inferred so far for each pair of environment flags."""

    def __init__(self) -> None:
        self.definitions: list[tuple[str, str]] = []
        self.positions: dict[str, list[int]] = {}
        self.types: dict[_Flags, list[Type]] = {}

    def add(self, name: str, expression: str) -> None:
        self.positions.setdefault(name, []).append(len(self.definitions))
        self.definitions.append((name, expression))


class _Variables:
    """The first `count` variables of a store. A policy may have thousands of variables, and each sees the earlier ones.
    Therefore all prefixes of the list share one store."""

    __slots__ = ("_count", "_store")

    def __init__(self, store: _Store | None = None, count: int = 0) -> None:
        self._store = store or _Store()
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Variables) or self._count != other._count:
            return False
        return not self._count or self._store is other._store

    def __hash__(self) -> int:
        return hash((id(self._store), self._count)) if self._count else 0

    def defining(self, name: str, expression: str) -> _Variables:
        store = self._store
        if not self._count or self._count < len(store.definitions):
            store = _Store()
            for definition in self._store.definitions[: self._count]:
                store.add(*definition)
        store.add(name, expression)
        return _Variables(store, self._count + 1)

    def types(self, flags: _Flags, type_of: Callable[[str, _Variables], Type]) -> _VariableTypes:
        """Types by variable name. `type_of` returns the type of an expression that sees the given variables."""
        return _VariableTypes(self, flags, type_of)

    def find(self, name: str, flags: _Flags, type_of: Callable[[str, _Variables], Type]) -> Type | None:
        store = self._store
        positions = store.positions.get(name, [])
        index = bisect_left(positions, self._count) - 1
        if index < 0:
            return None
        known = store.types.setdefault(flags, [])
        while len(known) <= positions[index]:  # In order, because a type depends only on earlier ones.
            known.append(type_of(store.definitions[len(known)][1], _Variables(store, len(known))))
        return known[positions[index]]


class _VariableTypes(dict[str, Type]):
    """Fields of `variables`. The type of a field is inferred when an expression first uses it."""

    def __init__(
        self, variables: _Variables, flags: _Flags, type_of: Callable[[str, _Variables], Type]
    ) -> None:
        super().__init__()
        self._variables = variables
        self._flags = flags
        self._type_of = type_of

    def __missing__(self, name: str) -> Type:
        type_ = self._variables.find(name, self._flags, self._type_of)
        if type_ is None:
            raise KeyError(name)
        return type_

    def get(self, name: str, default: Type | None = None) -> Type | None:  # type: ignore[override]
        type_ = self._variables.find(name, self._flags, self._type_of)
        return default if type_ is None else type_


_NO_VARIABLES = _Variables()


Result = Literal["bool", "string", "string or null", "any", "ApplyConfiguration", "JSONPatch"]

_RESULTS: dict[Result, tuple[Type, ...]] = {
    "bool": (BOOL,),
    "string": (STRING,),
    "string or null": (STRING, Type("null", "null")),
    "any": (),
    "ApplyConfiguration": (object_type(declared.OBJECT, {}),),
    "JSONPatch": (list_of(declared.JSON_PATCH),),
}


class Environment:
    """Variables that an expression may use besides `object`, `oldObject`, `request` and `namespaceObject`.

    `variables` are named expressions, seen as `variables.<name>` in the order of the policy. `composed` declares
    `variables` even if it is empty, as it is for the first variable. `patch_types` declares the types of mutations:
    `Object` and `JSONPatch`.
    """

    __slots__ = ("_made", "authorizer", "composed", "params", "patch_types", "variables")

    def __init__(
        self,
        *,
        params: bool = False,
        authorizer: bool = True,
        patch_types: bool = False,
        variables: _Variables = _NO_VARIABLES,
        composed: bool = False,
    ) -> None:
        self.params = params
        self.authorizer = authorizer
        self.patch_types = patch_types
        self.variables = variables
        self.composed = composed
        self._made: cel.Environment | None = None

    def defining(self, name: str, expression: str) -> Environment:
        """Environment of the expressions after the given variable."""
        return Environment(
            params=self.params,
            authorizer=self.authorizer,
            patch_types=self.patch_types,
            variables=self.variables.defining(name, expression),
            composed=True,
        )

    def without_authorizer(self) -> Environment:
        """Environment of message expressions, which must not use the authorizer."""
        return Environment(
            params=self.params,
            authorizer=False,
            patch_types=self.patch_types,
            variables=self.variables,
            composed=self.composed,
        )

    def cel_environment(self) -> cel.Environment:
        """CEL environment with these declarations, built once."""
        if self._made is None:
            self._made = self._make(self.variables, patch_types=self.patch_types)
        return self._made

    def types(self) -> _VariableTypes:
        """Types of the variables. Each variable is compiled once, even in a long chain of variables."""
        return self.variables.types((self.params, self.authorizer), self._type_of)

    def _type_of(self, expression: str, seen: _Variables) -> Type:
        """Type of a variable's expression, DYN if it does not compile. It sees earlier variables but no patch
        types."""
        try:
            return cel.compile(expression, self._make(seen, patch_types=False)).type
        except CompileError:
            return DYN

    def _make(self, variables: _Variables, *, patch_types: bool) -> cel.Environment:
        known: dict[str, Type] = {
            "object": DYN,
            "oldObject": DYN,
            "namespaceObject": declared.NAMESPACE,
            "request": declared.REQUEST,
        }
        if variables or self.composed:
            types = variables.types((self.params, self.authorizer), self._type_of)
            known["variables"] = object_type("kubernetes.variables", types)
        functions: dict[str, declared.Function] = {}
        if self.params:
            known["params"] = DYN
        if self.authorizer:
            known["authorizer"] = declared.AUTHORIZER
        functions |= declared.AUTHORIZER_FUNCTIONS
        if patch_types:
            functions |= declared.PATCH_FUNCTIONS
        made = cel.Environment(known, functions, aside=True)
        if patch_types:
            made.variables = declared.PatchTypes(known)
        return made


def compile(expression: str, environment: Environment, result: Result) -> Program:
    """Program for the expression; raises CompileError with kube-apiserver's message. Callers cache the program."""
    try:
        program = cel.compile(expression, environment.cel_environment())
    except CompileError as error:
        raise CompileError(f"compilation failed: {error.located(expression)}") from None
    types = _RESULTS[result]
    if types and program.type not in types:
        names = [_format_type(type_) for type_ in types]
        what = names[0] if len(names) == 1 else f"one of [{' '.join(names)}]"
        raise CompileError(f"must evaluate to {what} but got {_format_type(program.type)}")
    return program


def _format_type(type_: Type) -> str:
    return "null_type" if type_.kind == "null" else str(type_)


def check(expression: str, environment: Environment, result: Result) -> str | None:
    """Compiles the expression and returns the error message, or None."""
    try:
        compile(expression, environment, result)
    except CompileError as error:
        return error.message
    return None


def validate(
    expression: str, path: str, environment: Environment, result: Result, *, value: Any = None
) -> list[FieldError]:
    """`check` as field errors. The errors show `value` if it is set, otherwise the expression."""
    wrong = check(expression, environment, result)
    return [fields.invalid(path, expression if value is None else value, wrong)] if wrong else []
