"""FlowSchema: assigns matching requests to a priority level."""

from __future__ import annotations

from collections.abc import Mapping

from kubist.api import bootstrap
from kubist.api.kinds.flowcontrol.common import FlowControlStatus, FlowControlStrategy, validate_conditions
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Subresource
from kubist.model.meta import fields, names
from kubist.model.meta.object import Object
from kubist.model.schema.internals import internal_form

_DISTINGUISHERS = ("ByNamespace", "ByUser")
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_SUBJECTS = {"User": "user", "Group": "group", "ServiceAccount": "serviceAccount"}
_MANDATORY = ("catch-all", "exempt")


class FlowSchemaStrategy(FlowControlStrategy):
    subresources: Mapping[str, Subresource] = {"status": FlowControlStatus()}

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        spec["matchingPrecedence"] = spec.get("matchingPrecedence") or 1000

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        name = new["metadata"].get("name", "")
        spec = new.get("spec") or {}
        errors = _validate_spec(spec, name)
        if name in _MANDATORY and spec != bootstrap.builtin("FlowSchema", name)["spec"]:
            value = internal_form("flowcontrol.FlowSchemaSpec", spec)
            errors.append(fields.invalid("spec", value, f"spec of '{name}' must equal the fixed value"))
        return errors + validate_conditions(new.get("status") or {})


def _validate_spec(spec: Object, name: str) -> Errors:
    errors = []
    precedence = spec.get("matchingPrecedence", 0)
    path = "spec.matchingPrecedence"
    if precedence <= 0:
        errors.append(fields.invalid(path, precedence, "must be a positive value"))
    if precedence > 10000:
        errors.append(fields.invalid(path, precedence, "must not be greater than 10000"))
    if precedence == 1 and name != "exempt":
        why = "only the schema named 'exempt' may have matchingPrecedence 1"
        errors.append(fields.invalid(path, precedence, why))
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type", "") not in _DISTINGUISHERS:
        value = internal_form("flowcontrol.FlowDistinguisherMethod", method)
        errors.append(fields.not_supported("spec.distinguisherMethod.type", value, _DISTINGUISHERS))
    level = (spec.get("priorityLevelConfiguration") or {}).get("name", "")
    path = "spec.priorityLevelConfiguration.name"
    if not level:
        errors.append(fields.required(path, "must reference a priority level"))
    else:
        errors += [fields.invalid(path, level, message) for message in names.dns_subdomain(level)]
    for index, rule in enumerate(spec.get("rules") or ()):
        errors += _validate_rule(rule, f"spec.rules[{index}]")
    return errors


def _validate_rule(rule: Object, path: str) -> Errors:
    errors: Errors = []
    if not rule.get("subjects"):
        errors.append(fields.required(f"{path}.subjects", "subjects must contain at least one value"))
    for index, subject in enumerate(rule.get("subjects") or ()):
        errors += _validate_subject(subject, f"{path}.subjects[{index}]")
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        why = "at least one of resourceRules and nonResourceRules has to be non-empty"
        errors.append(fields.required(path, why))
    for index, resource_rule in enumerate(rule.get("resourceRules") or ()):
        errors += _validate_resource_rule(resource_rule, f"{path}.resourceRules[{index}]")
    for index, other in enumerate(rule.get("nonResourceRules") or ()):
        errors += _validate_non_resource_rule(other, f"{path}.nonResourceRules[{index}]")
    return errors


def _validate_subject(subject: Object, path: str) -> Errors:
    kind = subject.get("kind", "")
    if kind not in _SUBJECTS:
        return [fields.not_supported(f"{path}.kind", kind, sorted(_SUBJECTS))]
    key = _SUBJECTS[kind]
    named = subject.get(key)
    errors = []
    if named is None:
        errors.append(fields.required(f"{path}.{key}", f"{key} is required when subject kind is '{kind}'"))
    elif kind == "ServiceAccount":
        errors += _validate_service_account(named, f"{path}.{key}")
    elif not named.get("name"):
        errors.append(fields.required(f"{path}.{key}.name"))
    errors += [
        fields.forbidden(f"{path}.{other}", f"{other} is forbidden when subject kind is not '{needed}'")
        for needed, other in (("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group"))
        if needed != kind and subject.get(other) is not None
    ]
    return errors


def _validate_service_account(account: Object, path: str) -> Errors:
    errors = []
    name = account.get("name", "")
    namespace = account.get("namespace", "")
    if not name:
        errors.append(fields.required(f"{path}.name"))
    elif name != "*":
        errors += [fields.invalid(f"{path}.name", name, message) for message in names.dns_subdomain(name)]
    if not namespace:
        errors.append(fields.required(f"{path}.namespace", "must specify namespace for service account"))
    else:
        errors += [fields.invalid(f"{path}.namespace", namespace, m) for m in names.dns_label(namespace)]
    return errors


def _validate_verbs(verbs: list[str], path: str) -> Errors:
    if not verbs:
        return [fields.required(path, "verbs must contain at least one value")]
    if "*" in verbs:
        return _alone(verbs, path, "verbs")
    return [] if set(_VERBS).issuperset(verbs) else [fields.not_supported(path, verbs, _VERBS)]


def _alone(values: list[str], path: str, what: str) -> Errors:
    """Rejects a list with both `*` and other items."""
    if "*" not in values or len(values) == 1:
        return []
    return [fields.invalid(path, values, f"if '*' is present, must not specify other {what}")]


def _validate_resource_rule(rule: Object, path: str) -> Errors:
    errors = _validate_verbs(rule.get("verbs") or [], f"{path}.verbs")
    for name, one, many in (
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ):
        values = rule.get(name) or []
        if not values:
            why = f"resource rules must supply at least one {one}"
            errors.append(fields.required(f"{path}.{name}", why))
        errors += _alone(values, f"{path}.{name}", many)
    namespaces = rule.get("namespaces") or []
    if not namespaces and not rule.get("clusterScope"):
        why = "resource rules that are not cluster scoped must supply at least one namespace"
        errors.append(fields.required(f"{path}.namespaces", why))
    elif "*" in namespaces:
        errors += _alone(namespaces, f"{path}.namespaces", "namespaces")
    else:
        why = "each member of this list must be '*' or a DNS-1123 label; "
        errors += [
            fields.invalid(f"{path}.namespaces[{index}]", namespace, why + message)
            for index, namespace in enumerate(namespaces)
            for message in names.dns_label(namespace)
        ]
    return errors


def _validate_non_resource_rule(rule: Object, path: str) -> Errors:
    errors = _validate_verbs(rule.get("verbs") or [], f"{path}.verbs")
    urls = rule.get("nonResourceURLs") or []
    if not urls:
        why = "nonResourceURLs must contain at least one value"
        errors.append(fields.required(f"{path}.nonResourceURLs", why))
    elif "*" in urls:
        errors += _alone(urls, f"{path}.nonResourceURLs", "non-resource URLs")
    else:
        for index, url in enumerate(urls):
            why = _url_error(url)
            if why:
                errors.append(fields.invalid(f"{path}.nonResourceURLs[{index}]", url, why))
    return errors


def _url_error(url: str) -> str:
    if not url:
        return "must not be empty"
    if url == "/":
        return ""
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    if url.count("*") > 1 or ("*" in url and not url.endswith("/*")):
        return "wildcard can only do suffix matching"
    return ""


strategy = FlowSchemaStrategy()
