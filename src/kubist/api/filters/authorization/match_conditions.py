"""Match conditions of an authorization webhook: CEL expressions over the SubjectAccessReview to be sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubist.api.filters.authorization.query import AuthorizationQuery, aggregate, selectors_asked
from kubist.base.offload import Lengthy, elsewhere
from kubist.model import cel
from kubist.model.cel import (
    BOOL,
    PER_CALL_LIMIT,
    STRING,
    CompileError,
    CostExceeded,
    EvaluationError,
    Program,
    list_of,
    map_of,
    object_type,
)

_TEXTS = list_of(STRING)
_REQUIREMENT = object_type(
    "kubernetes.SelectorRequirement", {"key": STRING, "operator": STRING, "values": _TEXTS}
)
_SELECTOR = {"rawSelector": STRING, "requirements": list_of(_REQUIREMENT)}
_TEXT_FIELDS = ("namespace", "verb", "group", "version", "resource", "subresource", "name")
_RESOURCE = dict.fromkeys(_TEXT_FIELDS, STRING) | {
    "fieldSelector": object_type("kubernetes.FieldSelectorAttributes", _SELECTOR),
    "labelSelector": object_type("kubernetes.LabelSelectorAttributes", _SELECTOR),
}
_REQUEST = {
    "resourceAttributes": object_type("kubernetes.ResourceAttributes", _RESOURCE),
    "nonResourceAttributes": object_type(
        "kubernetes.NonResourceAttributes", {"path": STRING, "verb": STRING}
    ),
    "user": STRING,
    "groups": _TEXTS,
    "extra": map_of(STRING, _TEXTS),
    "uid": STRING,
}
ENVIRONMENT = cel.Environment({"request": object_type("kubernetes.SubjectAccessReviewSpec", _REQUEST)})


class MatchFailed(Exception):
    """At least one match condition failed to evaluate, and none is false."""


def compile_condition(expression: str) -> Program:
    """Compiled expression. Raises CompileError with kube-apiserver's text."""
    try:
        program = cel.compile(expression, ENVIRONMENT)
    except CompileError as error:
        raise CompileError(f"compilation failed: {error.located(expression)}") from None
    if program.type != BOOL:
        raise CompileError(f"must evaluate to bool but got {program.type}")
    return program


class MatchConditions:
    """All match conditions of one webhook."""

    def __init__(self, programs: Sequence[Program]) -> None:
        self._programs = programs

    async def hold(self, attributes: AuthorizationQuery) -> bool:
        """Whether all conditions are true. A false condition decides at once. Otherwise an evaluation error
        raises MatchFailed."""
        if not self._programs:
            return True
        variables = {"request": _request(attributes)}
        try:
            return self._hold(variables)
        except Lengthy:
            return await elsewhere(self._hold, variables)

    def _hold(self, variables: dict[str, Any]) -> bool:
        errors = []
        for program in self._programs:
            try:
                if program.evaluate(variables, PER_CALL_LIMIT)[0] is False:
                    return False
            except (EvaluationError, CostExceeded) as error:
                why = f"expression '{program.expression}' resulted in error: {error}"
                errors.append(f"cel evaluation error: {why}")
        if errors:
            raise MatchFailed(aggregate(errors))
        return True


def _request(query: AuthorizationQuery) -> dict[str, Any]:
    """Spec of a SubjectAccessReview (v1) with all string fields, including empty ones."""
    user = query.user
    spec: dict[str, Any] = {
        "user": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra},
    }
    if not query.is_resource:
        return spec | {"nonResourceAttributes": {"path": query.path, "verb": query.verb}}
    attributes: dict[str, Any] = {name: getattr(query, name) for name in _TEXT_FIELDS}
    for name, selector in selectors_asked(query).items():
        if selector["requirements"]:
            requirements = [{"values": [], **requirement} for requirement in selector["requirements"]]
            attributes[name] = {"requirements": requirements}
    return spec | {"resourceAttributes": attributes}
