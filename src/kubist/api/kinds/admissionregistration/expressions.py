"""CEL expressions of policies and match conditions: the declared variables and the required result types.

The kinds of this package call `check` when expressions are written. Admission calls `compile` to evaluate them.
"""

from __future__ import annotations

from typing import Any, Literal

from kubist.api.kinds.admissionregistration import variables as declared
from kubist.api.kinds.admissionregistration.composition import NO_VARIABLES, Variables, VariableTypes
from kubist.model import cel
from kubist.model.cel import BOOL, DYN, STRING, CompileError, Program, Type, list_of, object_type
from kubist.model.meta import fields
from kubist.model.meta.fields import FieldError

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
    `variables` even while it is still empty, as the first variable sees it. `patch_types` declares the types of
    mutations: `Object` and `JSONPatch`.
    """

    __slots__ = ("_made", "authorizer", "composed", "params", "patch_types", "variables")

    def __init__(
        self,
        *,
        params: bool = False,
        authorizer: bool = True,
        patch_types: bool = False,
        variables: Variables = NO_VARIABLES,
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

    def types(self) -> VariableTypes:
        """Types of the variables. Each variable is compiled once, also in a long chain of variables."""
        return self.variables.types((self.params, self.authorizer), self._type_of)

    def _type_of(self, expression: str, seen: Variables) -> Type:
        """Type of a variable's expression, DYN if it does not compile. It sees earlier variables but no patch
        types."""
        try:
            return cel.compile(expression, self._make(seen, patch_types=False)).type
        except CompileError:
            return DYN

    def _make(self, variables: Variables, *, patch_types: bool) -> cel.Environment:
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
    """Program for the expression; raises CompileError with the reference's message. Callers cache the program."""
    try:
        program = cel.compile(expression, environment.cel_environment())
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
    """Compiles the expression and returns the error message, or None."""
    try:
        compile(expression, environment, result)
    except CompileError as error:
        return error.message
    return None


def validate(
    expression: str, path: str, environment: Environment, result: Result, *, shown: Any = None
) -> list[FieldError]:
    """`check` as field errors. The errors show `shown` as the value, if given, otherwise the expression."""
    wrong = check(expression, environment, result)
    return [fields.invalid(path, expression if shown is None else shown, wrong)] if wrong else []
