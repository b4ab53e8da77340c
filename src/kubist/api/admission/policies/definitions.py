"""Compiled policies and bindings, the bindings of each policy, and the parameters that a binding gives its policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import orjson

from kubist.api.admission.admission_request import AdmissionRequest, Target
from kubist.api.admission.followed import Followed
from kubist.api.admission.match_conditions import Conditions
from kubist.api.admission.matching import Criteria
from kubist.api.admission.policies.evaluation import Expression
from kubist.api.kinds.admissionregistration.expressions import Environment
from kubist.api.resources.context import Context
from kubist.model.meta.object import Object
from kubist.model.meta.selectors import label_selector

if TYPE_CHECKING:
    from kubist.api.object_store.registry import Registry


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


class Misconfigured(Exception):
    """Policy or binding that cannot be evaluated because of its configuration."""


def find_param_kind(ctx: Context, kind: Object | None) -> Any:
    """Resource of the policy's paramKind; None if the policy has no parameters. Raises Misconfigured if it is not
    served."""
    if kind is None:
        return None
    group, _, version = kind.get("apiVersion", "").rpartition("/")
    resource = ctx.objects.find_kind(group, version, kind.get("kind", ""))
    if resource is None:
        kind_text = f"{group}/{version}, Kind={kind.get('kind', '')}"
        raise Misconfigured(f"failed to find resource referenced by paramKind: '{kind_text}'")
    return resource


def collect_params(ctx: Context, resource: Any, ref: Object | None, namespace: str) -> list[Object | None]:
    """Parameter objects; the policy is evaluated once for each. `[None]` means one evaluation without parameters."""
    if resource is None or ref is None:
        return [None]
    where = ref.get("namespace", "")
    if where and not resource.namespaced:
        raise Misconfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    if resource.namespaced:
        where = where or namespace
        if not where:
            why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            raise Misconfigured(why)
    params = []
    if ref.get("name"):
        one = ctx.objects.get(resource.resource, ref["name"], where, group=resource.group)
        params = [one] if one is not None else []
    elif ref.get("selector") is not None:
        selector = label_selector(ref["selector"])
        for obj in ctx.objects.list(resource.resource, where, group=resource.group):
            if selector.matches(obj["metadata"].get("labels") or {}):
                params.append(obj)
    if not params and ref.get("parameterNotFoundAction") == "Deny":
        raise Misconfigured("no params found for policy binding with `Deny` parameterNotFoundAction")
    return [_in_version(obj, resource) for obj in params]


def _in_version(obj: Object, resource: Any) -> Object:
    if obj.get("apiVersion") == resource.api_version:
        return obj
    converted: Object = resource.strategy.convert(orjson.loads(orjson.dumps(obj)), resource.api_version)
    return converted
