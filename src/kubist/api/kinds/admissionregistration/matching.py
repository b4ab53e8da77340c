"""Validation shared by webhooks and policies: rules, match resources and match conditions."""

from __future__ import annotations

from kubist.api.kinds.admissionregistration import expressions
from kubist.api.kinds.admissionregistration.expressions import Environment
from kubist.api.kinds.shared.values import repeats
from kubist.api.resources.strategy import Errors
from kubist.base.offload import leave_loop
from kubist.model.meta import fields, names
from kubist.model.meta.labels import validate_selector
from kubist.model.meta.object import Object

FAILURE_POLICIES = ("Fail", "Ignore")
MATCH_POLICIES = ("Equivalent", "Exact")
REINVOCATION_POLICIES = ("IfNeeded", "Never")
OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
MUTATING_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
SCOPES = ("*", "Cluster", "Namespaced")
RESERVED_SUFFIX = ".static.k8s.io"

MOST_CONDITIONS = 64


def default_rules(rules: list[Object] | None) -> None:
    for rule in rules or ():
        rule.setdefault("scope", "*")


def default_match_resources(match: Object | None) -> None:
    if match is None:
        return
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    default_rules(match.get("resourceRules"))
    default_rules(match.get("excludeResourceRules"))


def reserved_name_warnings(obj: Object) -> list[str]:
    if not obj["metadata"].get("name", "").endswith(RESERVED_SUFFIX):
        return []
    return [
        f'metadata.name: names ending with "{RESERVED_SUFFIX}" are reserved for static manifest-based '
        "configurations and cannot be managed via the API"
    ]


def one_of(value: str | None, path: str, allowed: tuple[str, ...], *, needed: bool = False) -> Errors:
    """Validates an enum value. None is an error only with `needed`."""
    if value is None:
        return [fields.required(path)] if needed else []
    return [] if value in allowed else [fields.not_supported(path, value, allowed)]


def validate_rule(rule: Object, path: str) -> Errors:
    """Validates operations, groups, versions and resources of a rule. `*` must be the only item of its list."""
    errors = []
    operations = rule.get("operations") or []
    if not operations:
        errors.append(fields.required(f"{path}.operations"))
    errors += _alone(operations, f"{path}.operations", "operations")
    errors += [
        fields.not_supported(f"{path}.operations[{index}]", operation, OPERATIONS)
        for index, operation in enumerate(operations)
        if operation not in OPERATIONS
    ]
    for name, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(name) or []
        if not values:
            errors.append(fields.required(f"{path}.{name}"))
        errors += _alone(values, f"{path}.{name}", what)
    errors += [
        fields.required(f"{path}.apiVersions[{index}]")
        for index, version in enumerate(rule.get("apiVersions") or ())
        if not version
    ]
    errors += _validate_resources(rule.get("resources") or [], f"{path}.resources")
    return errors + one_of(rule.get("scope"), f"{path}.scope", SCOPES)


def _alone(values: list[str], path: str, what: str) -> Errors:
    if len(values) < 2 or "*" not in values:
        return []
    return [fields.invalid(path, values, f"if '*' is present, must not specify other {what}")]


def _validate_resources(resources: list[str], path: str) -> Errors:
    """Validates resources: `a/*` is all subresources of a, `*/b` is subresource b of all resources, `*/*` is both."""
    errors = []
    if not resources:
        errors.append(fields.required(path))
    all_of: set[str] = set()
    everywhere: set[str] = set()
    plain = False
    for index, entry in enumerate(resources):
        if not entry:
            errors.append(fields.required(f"{path}[{index}]"))
            continue
        resource, slash, sub = entry.partition("/")
        if not slash:
            plain = entry != "*"
            continue
        if resource in all_of:
            why = f"if '{resource}/*' is present, must not specify {entry}"
            errors.append(fields.invalid(f"{path}[{index}]", entry, why))
        if sub in everywhere:
            why = f"if '*/{sub}' is present, must not specify {entry}"
            errors.append(fields.invalid(f"{path}[{index}]", entry, why))
        if sub == "*":
            all_of.add(resource)
        if resource == "*":
            everywhere.add(sub)
    if len(resources) > 1 and "*/*" in resources:
        errors.append(
            fields.invalid(path, resources, "if '*/*' is present, must not specify other resources")
        )
    if "*" in resources and plain:
        why = "if '*' is present, must not specify other resources without subresources"
        errors.append(fields.invalid(path, resources, why))
    return errors


def validate_match_resources(match: Object | None, path: str) -> Errors:
    if match is None:
        return []
    errors = one_of(match.get("matchPolicy"), f"{path}.matchPolicy", MATCH_POLICIES, needed=True)
    for name in ("namespaceSelector", "objectSelector"):
        if match.get(name) is None:
            errors.append(fields.required(f"{path}.{name}"))
        errors += validate_selector(match.get(name), f"{path}.{name}")
    for name in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(name) or ()):
            errors += _validate_named_rule(rule, f"{path}.{name}[{index}]")
    return errors


def _validate_named_rule(rule: Object, path: str) -> Errors:
    errors = []
    resource_names = rule.get("resourceNames") or []
    repeated = frozenset(repeats(resource_names))
    for index, name in enumerate(resource_names):
        place = f"{path}.resourceNames[{index}]"
        errors += [fields.invalid(place, name, message) for message in names.path_segment(name)]
        if index in repeated:
            errors.append(fields.duplicate(place, name))
    return errors + validate_rule(rule, path)


def validate_mutating_operations(match: Object | None, path: str) -> Errors:
    """Rejects the DELETE operation for mutating policies: a deleted object cannot be mutated."""
    return [
        fields.not_supported(f"{path}.resourceRules.operations", operation, MUTATING_OPERATIONS)
        for rule in (match or {}).get("resourceRules") or ()
        for operation in rule.get("operations") or ()
        if operation not in MUTATING_OPERATIONS
    ]


def validate_match_conditions(conditions: list[Object] | None, path: str, *, params: bool = False) -> Errors:
    conditions = conditions or []
    errors: Errors = []
    if len(conditions) > MOST_CONDITIONS:
        leave_loop()
        errors.append(fields.too_many(path, len(conditions), MOST_CONDITIONS))
    seen = set()
    for index, condition in enumerate(conditions):
        place = f"{path}[{index}]"
        expression = condition.get("expression", "").strip()
        if not expression:
            errors.append(fields.required(f"{place}.expression"))
        else:
            environment = Environment(params=params)
            errors += expressions.validate(expression, f"{place}.expression", environment, "bool")
        name = condition.get("name", "")
        if not name:
            errors.append(fields.required(f"{place}.name"))
            continue
        errors += [fields.invalid(f"{place}.name", name, m) for m in names.qualified_name(name)]
        if name in seen:
            errors.append(fields.duplicate(f"{place}.name", name))
        seen.add(name)
    return errors
