"""Rules of pods about nodes: tolerations of taints, nodeSelector, and required and preferred node affinity."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kubist.model.meta.object import Object
from kubist.model.meta.selectors import Labels, Requirement


def tolerated(taint: Object, tolerations: Iterable[Object]) -> bool:
    if taint.get("effect") == "PreferNoSchedule":
        return True
    for toleration in tolerations:
        if toleration.get("effect") not in (None, "", taint.get("effect")):
            continue
        if toleration.get("key", "") not in ("", taint["key"]):
            continue
        if toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", ""):
            return True
    return False


NodeRule = Callable[[str, Labels], bool]
"""Whether a node with this name and these labels matches."""

_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!", "Gt": "gt", "Lt": "lt"}


def required_rule(spec: Object) -> NodeRule | None:
    """Rule of nodeSelector and of the required node affinity of a pod. None if every node matches."""
    selector = spec.get("nodeSelector") or {}
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = selector_rule(required) if required is not None else None
    if not selector:
        return terms
    required_labels = selector.items()
    if terms is None:
        return lambda _, labels: required_labels <= labels.items()
    return lambda name, labels: required_labels <= labels.items() and terms(name, labels)


def selector_rule(selector: Object) -> NodeRule:
    """Rule of a NodeSelector, whose terms are alternatives."""
    terms = [term_rule(term) for term in selector.get("nodeSelectorTerms") or ()]
    return lambda name, labels: any(term(name, labels) for term in terms)


def term_rule(term: Object) -> NodeRule:
    """Rule of a NodeSelectorTerm. An empty term matches no node."""
    expressions = [_matcher(requirement) for requirement in term.get("matchExpressions") or ()]
    fields = [_matcher(requirement) for requirement in term.get("matchFields") or ()]
    if not expressions and not fields:
        return lambda _, __: False

    def matches(name: str, labels: Labels) -> bool:
        return all(matcher(labels) for matcher in expressions) and all(
            matcher({"metadata.name": name}) for matcher in fields
        )

    return matches


def _matcher(expression: Object) -> Callable[[Labels], bool]:
    operator, values = _OPERATORS.get(expression.get("operator", "")), tuple(expression.get("values") or ())
    if operator is None:
        return lambda _: False
    try:
        return Requirement(expression.get("key", ""), operator, values).matcher()
    except (ValueError, IndexError):
        return lambda _: False


def named_nodes(spec: Object) -> frozenset[str] | None:
    """Names of the only nodes that the required terms allow. None unless every term names nodes."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    names: set[str] = set()
    terms = required.get("nodeSelectorTerms") or ()
    for term in terms:
        named: set[str] | None = None
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("operator") == "In":
                values = set(field.get("values") or ())
                named = values if named is None else named & values
        if named is None:
            return None
        names |= named
    return frozenset(names) if terms else None


def preferred_rules(spec: Object) -> tuple[tuple[int, NodeRule], ...]:
    """Weights and rules of the preferred node affinity of a pod."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return tuple((term["weight"], term_rule(term.get("preference") or {})) for term in preferred)
