"""Node affinity: nodeSelector and required terms of a pod."""

from __future__ import annotations

from collections.abc import Callable

from kubist.meta.object import Object
from kubist.meta.selectors import Labels, Requirement

NodeRule = Callable[[str, Labels], bool]
"""Whether a node of a name and with labels matches."""

_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!", "Gt": "gt", "Lt": "lt"}


def required_rule(spec: Object) -> NodeRule | None:
    """Rule of nodeSelector and of the required node affinity of a pod. None if every node matches."""
    selector = spec.get("nodeSelector") or {}
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not selector and required is None:
        return None
    terms = [_term_rule(term) for term in (required or {}).get("nodeSelectorTerms") or ()]
    wanted = selector.items()
    return lambda name, labels: (
        wanted <= labels.items() and (required is None or any(term(name, labels) for term in terms))
    )


def _term_rule(term: Object) -> NodeRule:
    """Rule of a NodeSelectorTerm. An empty term matches no node."""
    expressions = [_matcher(held) for held in term.get("matchExpressions") or ()]
    fields = [_matcher(held) for held in term.get("matchFields") or ()]
    if not expressions and not fields:
        return lambda _name, _labels: False
    return lambda name, labels: (
        all(matches(labels) for matches in expressions)
        and all(matches({"metadata.name": name}) for matches in fields)
    )


def _matcher(expression: Object) -> Callable[[Labels], bool]:
    operator, values = _OPERATORS.get(expression.get("operator", "")), tuple(expression.get("values") or ())
    if operator is None or (operator in ("gt", "lt") and len(values) != 1):
        return lambda _labels: False
    try:
        return Requirement(expression.get("key", ""), operator, values).matcher()
    except ValueError:
        return lambda _labels: False
