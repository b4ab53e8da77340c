"""Compiled policies and bindings, and the bindings of each policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

from kubist.api.admission.admission_request import AdmissionRequest, Target
from kubist.api.admission.followed import Followed
from kubist.api.admission.matchconditions import Conditions
from kubist.api.admission.matching import Criteria
from kubist.api.admission.policies.evaluation import Expression
from kubist.api.kinds.admissionregistration.expressions import Environment
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.objectstore.registry import Registry

GROUP = "admissionregistration.k8s.io"


class Policy:
    """Base of validating and mutating policies."""

    def __init__(self, policy: Object) -> None:
        spec = policy.get("spec") or {}
        self.name: str = policy["metadata"]["name"]
        self.param_kind: Object | None = spec.get("paramKind")
        self.ignores_failure = spec.get("failurePolicy") == "Ignore"
        self.criteria = Criteria(spec.get("matchConstraints") or {}, "resourceRules")
        composed = bool(spec.get("variables"))
        environment = Environment(params=self.param_kind is not None, composed=composed)
        self.variables: dict[str, Expression] = {}
        for variable in spec.get("variables") or ():
            name, text = variable.get("name", ""), variable.get("expression", "")
            self.variables[name] = Expression(text, environment, "any")
            environment = environment.defining(name, text)
        self.environment = environment
        self.conditions = Conditions(
            spec.get("matchConditions") or [], environment, ignores_failure=self.ignores_failure
        )


class Binding:
    """Binding of a policy to resources and parameters."""

    def __init__(self, binding: Object) -> None:
        spec = binding.get("spec") or {}
        self.name: str = binding["metadata"]["name"]
        self.policy: str = spec.get("policyName", "")
        self.param_ref: Object | None = spec.get("paramRef")
        self.actions: list[str] = spec.get("validationActions") or []
        match = spec.get("matchResources")
        self._criteria = Criteria(match, "resourceRules") if match is not None else None

    def match(self, request: AdmissionRequest) -> Target | None:
        return request.target if self._criteria is None else self._criteria.match(request)


P = TypeVar("P", bound=Policy)
Bound = Iterable[tuple[P, list[Binding]]]


class PolicyBindings(Generic[P]):
    """Bound policies of one kind, with their bindings."""

    def __init__(self, registry: Registry, policies: str, bindings: str, make: Callable[[Object], P]) -> None:
        self._policies = Followed(registry, GROUP, policies, make)
        self.bindings = Followed(registry, GROUP, bindings, Binding)
        self._seen = (-1, -1)
        self._pairs: list[tuple[P, list[Binding]]] = []

    def bound(self) -> Bound[P]:
        """Policies that have a binding, with their bindings, in the order of the policies' names."""
        bindings = self.bindings.items
        policies = self._policies.items
        seen = (self.bindings.generation, self._policies.generation)
        if seen != self._seen:
            self._seen = seen
            by_policy: dict[str, list[Binding]] = {}
            for binding in bindings:
                by_policy.setdefault(binding.policy, []).append(binding)
            self._pairs = [(p, by_policy[p.name]) for p in policies if p.name in by_policy]
        return self._pairs
