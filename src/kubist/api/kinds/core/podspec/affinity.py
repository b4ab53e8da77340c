"""Validation of node affinity, pod affinity and pod anti-affinity."""

from __future__ import annotations

from kubist.api.kinds.core.podspec.options import Options
from kubist.api.kinds.core.podspec.scheduling import validate_label_keys
from kubist.model.meta import names
from kubist.model.meta.fields import FieldError, forbidden, invalid, required
from kubist.model.meta.labels import validate_label_name, validate_selector
from kubist.model.meta.object import Object

Errors = list[FieldError]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_LONGEST_VALUE = 63
"""Maximum length of a copied label value in characters. Longer values are invalid and would be copied once for each
key."""
_WEIGHT = "must be in the range 1-100"


def validate_affinity(affinity: Object, path: str, options: Options) -> Errors:
    errors: Errors = []
    if "nodeAffinity" in affinity:
        errors += _node_affinity(affinity["nodeAffinity"], f"{path}.nodeAffinity", options)
    for kind in ("podAffinity", "podAntiAffinity"):
        if kind in affinity:
            errors += _pod_affinity(affinity[kind], f"{path}.{kind}", options)
    return errors


def _node_affinity(affinity: Object, path: str, options: Options) -> Errors:
    errors: Errors = []
    if REQUIRED in affinity:
        allow = options.invalid_node_affinity_values
        errors += validate_node_selector(affinity[REQUIRED], f"{path}.{REQUIRED}", allow_invalid_values=allow)
    for index, term in enumerate(affinity.get(PREFERRED) or ()):
        where = f"{path}.{PREFERRED}[{index}]"
        if not 1 <= term.get("weight", 0) <= 100:
            errors.append(invalid(f"{where}.weight", term.get("weight", 0), _WEIGHT))
        errors += validate_node_selector_term(
            term.get("preference") or {}, f"{where}.preference", allow_invalid_values=True
        )
    return errors


def validate_node_selector(selector: Object, path: str, *, allow_invalid_values: bool = False) -> Errors:
    """Validates a NodeSelector. A node must match one of its terms."""
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    errors: Errors = []
    for index, term in enumerate(terms):
        where = f"{path}.nodeSelectorTerms[{index}]"
        errors += validate_node_selector_term(term, where, allow_invalid_values=allow_invalid_values)
    return errors


def validate_node_selector_term(term: Object, path: str, *, allow_invalid_values: bool) -> Errors:
    errors: Errors = []
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        errors += _label_requirement(requirement, f"{path}.matchExpressions[{index}]", allow_invalid_values)
    for index, requirement in enumerate(term.get("matchFields") or ()):
        errors += _field_requirement(requirement, f"{path}.matchFields[{index}]")
    return errors


def _label_requirement(requirement: Object, path: str, allow_invalid_values: bool) -> Errors:
    values = requirement.get("values") or ()
    errors: Errors = []
    match requirement.get("operator", ""):
        case "In" | "NotIn":
            if not values:
                why = "must be specified when `operator` is 'In' or 'NotIn'"
                errors.append(required(f"{path}.values", why))
        case "Exists" | "DoesNotExist":
            if values:
                why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(forbidden(f"{path}.values", why))
        case "Gt" | "Lt":
            if len(values) != 1:
                why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                errors.append(required(f"{path}.values", why))
        case operator:
            errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    errors += validate_label_name(requirement.get("key", ""), f"{path}.key")
    if not allow_invalid_values:
        for index, value in enumerate(values):
            errors += [invalid(f"{path}.values[{index}]", value, m) for m in names.label_value(value)]
    return errors


def _field_requirement(requirement: Object, path: str) -> Errors:
    """Validates matchFields. The only supported field is metadata.name."""
    values = requirement.get("values") or ()
    errors: Errors = []
    operator, key = requirement.get("operator", ""), requirement.get("key", "")
    if operator not in ("In", "NotIn"):
        errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    elif len(values) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(f"{path}.values", why))
    if key != "metadata.name":
        return [*errors, invalid(f"{path}.key", key, "not a valid field selector key")]
    for index, value in enumerate(values):
        errors += [invalid(f"{path}.values[{index}]", value, m) for m in names.dns_subdomain(value)]
    return errors


def _pod_affinity(affinity: Object, path: str, options: Options) -> Errors:
    errors: Errors = []
    for index, term in enumerate(affinity.get(REQUIRED) or ()):
        errors += _pod_term(term, f"{path}.{REQUIRED}[{index}]", options)
    for index, weighted in enumerate(affinity.get(PREFERRED) or ()):
        where = f"{path}.{PREFERRED}[{index}]"
        if not 1 <= weighted.get("weight", 0) <= 100:
            errors.append(invalid(f"{where}.weight", weighted.get("weight", 0), _WEIGHT))
        errors += _pod_term(weighted.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm", options)
    return errors


def _pod_term(term: Object, path: str, options: Options) -> Errors:
    errors: Errors = []
    allow = options.invalid_affinity_selector_values
    for selector in ("labelSelector", "namespaceSelector"):
        errors += validate_selector(term.get(selector), f"{path}.{selector}", allow_invalid_values=allow)
    for namespace in term.get("namespaces") or ():
        errors += [invalid(f"{path}.namespace", namespace, m) for m in names.dns_label(namespace)]
    errors += validate_label_keys(
        term.get("matchLabelKeys"), term.get("mismatchLabelKeys"), term.get("labelSelector"), path
    )
    topology = term.get("topologyKey", "")
    if not topology:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    return errors + validate_label_name(topology, f"{path}.topologyKey")


def merge_label_keys(affinity: Object, labels: dict[str, str]) -> None:
    """Turns matchLabelKeys and mismatchLabelKeys of a new pod into expressions with the pod's label values."""
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind)
        if rules:
            for weighted in rules.get(PREFERRED) or ():
                _merge(weighted.get("podAffinityTerm") or {}, labels)
            for term in rules.get(REQUIRED) or ():
                _merge(term, labels)


def _merge(term: Object, labels: dict[str, str]) -> None:
    selector = term.get("labelSelector")
    if selector is None:
        return
    for keys, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        add_label_keys(selector, term.get(keys), operator, labels)


def add_label_keys(selector: Object, keys: list[str] | None, operator: str, labels: dict[str, str]) -> None:
    for key in keys or ():
        if key in labels and len(labels[key]) <= _LONGEST_VALUE:
            expression = {"key": key, "operator": operator, "values": [labels[key]]}
            selector.setdefault("matchExpressions", []).append(expression)
