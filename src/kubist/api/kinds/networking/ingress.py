"""Ingress: routes HTTP hosts and paths to services or other backends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from kubist.api.kinds.shared.ip import ip_warnings, parse_ip, validate_ip
from kubist.api.kinds.shared.values import validate_port, validate_port_or_name
from kubist.api.resources.strategy import Errors, Status, Strategy, Subresource
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import names
from kubist.model.meta.fields import invalid, not_supported, required
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

CLASS_ANNOTATION = "kubernetes.io/ingress.class"
PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_BAD_IN_PATHS = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDS = ("/..", "/.")


class IngressStatus(Status):
    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        errors: Errors = []
        known = {item["ip"] for item in _load_balancers(old) if item.get("ip")}
        for i, item in enumerate(_load_balancers(new)):
            path = f"status.loadBalancer.ingress[{i}]"
            if ip := item.get("ip"):
                errors += validate_ip(ip, f"{path}.ip", known)
            if hostname := item.get("hostname"):
                messages = names.dns_subdomain(hostname)
                errors += [invalid(f"{path}.hostname", hostname, message) for message in messages]
                errors += _validate_not_ip(hostname, f"{path}.hostname")
        return errors

    def warnings(self, ctx: Context, new: Object, old: Object) -> Iterable[str]:
        for i, item in enumerate(_load_balancers(new)):
            if ip := item.get("ip"):
                yield from ip_warnings(ip, f"status.loadBalancer.ingress[{i}]")


class IngressStrategy(Strategy):
    generation_fields = ("spec",)
    reset_fields = ("status",)
    first_status: ClassVar = {"loadBalancer": {}}
    metadata_rules = ("update", "object")
    subresources: Mapping[str, Subresource] = {"status": IngressStatus()}

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        spec = new["spec"]
        if old is not None:
            before = old["spec"]
            bad_secret = any(_validate_secret_name(tls, "") for tls in before.get("tls") or ())
            bad_wildcard = any(
                _validate_http(rule, "") for rule in before.get("rules") or () if "*" in rule.get("host", "")
            )
            return _validate_spec(spec, any_secret_name=bad_secret, any_wildcard_rule=bad_wildcard)
        errors = _validate_spec(spec)
        annotated = (new["metadata"].get("annotations") or {}).get(CLASS_ANNOTATION)
        name = spec.get("ingressClassName")
        if annotated is not None and name is not None and annotated != name:
            detail = "must match `ingressClassName` when both are specified"
            errors.append(invalid(f"annotations.{CLASS_ANNOTATION}", annotated, detail))
        return errors

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        annotated = CLASS_ANNOTATION in (new["metadata"].get("annotations") or {})
        if old is None and annotated and new["spec"].get("ingressClassName") is None:
            annotation = quoted(CLASS_ANNOTATION)
            yield f"annotation {annotation} is deprecated, please use 'spec.ingressClassName' instead"


def _load_balancers(ingress: Object) -> list[dict[str, Any]]:
    return ingress["status"]["loadBalancer"].get("ingress") or []


def _validate_not_ip(host: str, path: str) -> Errors:
    if parse_ip(host) is None:
        return []
    return [invalid(path, host, "must be a DNS name, not an IP address")]


def _validate_host(host: str, path: str) -> Errors:
    check = names.wildcard_dns_subdomain if "*" in host else names.dns_subdomain
    return [invalid(path, host, message) for message in check(host)]


def _validate_spec(
    spec: dict[str, Any], *, any_secret_name: bool = False, any_wildcard_rule: bool = False
) -> Errors:
    errors: Errors = []
    backend, rules = spec.get("defaultBackend"), spec.get("rules")
    if not rules and backend is None:
        errors.append(invalid("spec", rules, "either `defaultBackend` or `rules` must be specified"))
    if backend is not None:
        errors += _validate_backend(backend, "spec.defaultBackend")
    for i, rule in enumerate(rules or ()):
        path = f"spec.rules[{i}]"
        host = rule.get("host", "")
        if host:
            errors += _validate_not_ip(host, f"{path}.host")
            errors += _validate_host(host, f"{path}.host")
        if "*" not in host or not any_wildcard_rule:
            errors += _validate_http(rule, path)
    for i, tls in enumerate(spec.get("tls") or ()):
        for j, host in enumerate(tls.get("hosts") or ()):
            errors += _validate_host(host, f"spec.tls[{i}].hosts[{j}]")
        if not any_secret_name:
            errors += _validate_secret_name(tls, f"spec.tls[{i}].secretName")
    if (name := spec.get("ingressClassName")) is not None:
        errors += [invalid("spec.ingressClassName", name, message) for message in names.dns_subdomain(name)]
    return errors


def _validate_secret_name(tls: dict[str, Any], path: str) -> Errors:
    name = tls.get("secretName", "")
    return [invalid(path, name, message) for message in names.dns_subdomain(name)] if name else []


def _validate_http(rule: dict[str, Any], path: str) -> Errors:
    http = rule.get("http")
    if http is None:
        return []
    paths = http.get("paths") or ()
    errors: Errors = [] if paths else [required(f"{path}.http.paths")]
    for i, item in enumerate(paths):
        errors += _validate_path(item, f"{path}.http.paths[{i}]")
    return errors


def _validate_path(item: dict[str, Any], path: str) -> Errors:
    kind, value = item.get("pathType"), item.get("path", "")
    if kind is None:
        return [required(f"{path}.pathType", "pathType must be specified")]
    errors: Errors = []
    where = f"{path}.path"
    if kind not in PATH_TYPES:
        errors.append(not_supported(f"{path}.pathType", kind, PATH_TYPES))
    elif kind == "ImplementationSpecific":
        if value and not value.startswith("/"):
            errors.append(invalid(where, value, "must be an absolute path"))
    else:
        if not value.startswith("/"):
            errors.append(invalid(where, value, "must be an absolute path"))
        errors += [
            invalid(where, value, f"must not contain '{bad}'") for bad in _BAD_IN_PATHS if bad in value
        ]
        errors += [
            invalid(where, value, f"cannot end with '{bad}'") for bad in _BAD_ENDS if value.endswith(bad)
        ]
    return errors + _validate_backend(item.get("backend") or {}, f"{path}.backend")


def _validate_backend(backend: dict[str, Any], path: str) -> Errors:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return validate_reference(resource, f"{path}.resource")
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    errors: Errors = []
    name = service.get("name", "")
    if name:
        errors += [invalid(f"{path}.service.name", name, message) for message in names.dns_label(name)]
    else:
        errors.append(required(f"{path}.service.name"))
    port = service.get("port") or {}
    if port.get("name") and port.get("number"):
        errors.append(invalid(path, "", "cannot set both port name & port number"))
    elif port.get("name"):
        errors += validate_port_or_name(port["name"], f"{path}.service.port.name")
    elif port.get("number"):
        errors += validate_port(port["number"], f"{path}.service.port.number")
    else:
        errors.append(required(path, "port name or number is required"))
    return errors


def validate_reference(reference: dict[str, Any], path: str) -> Errors:
    """Validates a typed reference to an object in the same namespace or to a cluster-scoped object."""
    errors: Errors = []
    if (group := reference.get("apiGroup")) is not None:
        errors += [invalid(f"{path}.apiGroup", group, message) for message in names.dns_subdomain(group)]
    for field in ("kind", "name"):
        value = reference.get(field, "")
        if value:
            errors += [invalid(f"{path}.{field}", value, message) for message in names.path_segment(value)]
        else:
            errors.append(required(f"{path}.{field}"))
    return errors


strategy = IngressStrategy()
