"""IngressClass: the controller that implements an Ingress, and its parameters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from kubist.api.kinds.networking.ingress import validate_reference
from kubist.api.kinds.shared.update import immutable
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import names, objectmeta
from kubist.model.meta.fields import forbidden, invalid, not_supported, required, too_long
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

CONTROLLER_LIMIT = 250
SCOPES = ("Cluster", "Namespace")
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"


class IngressClassStrategy(Strategy):
    generation_fields = ("spec",)

    def default(self, obj: Object) -> None:
        parameters = obj["spec"].get("parameters")
        if parameters is not None and parameters.get("scope") is None:
            parameters["scope"] = "Cluster"

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        spec = new["spec"]
        controller = spec.get("controller", "")
        errors: Errors = []
        if old is not None:
            before = old["spec"].get("controller")
            errors += immutable(spec.get("controller"), before, "spec.controller", "string")
            errors += objectmeta.validate_create(
                new["metadata"], namespaced=False, validate_name=self.validate_name
            )
        if len(controller.encode()) > CONTROLLER_LIMIT:
            errors.append(too_long("spec.controller", CONTROLLER_LIMIT))
        errors += validate_domain_prefixed_path(controller, "spec.controller")
        if (parameters := spec.get("parameters")) is not None:
            errors += _validate_parameters(parameters, "spec.parameters")
        return errors


def validate_domain_prefixed_path(text: str, path: str) -> Errors:
    """Validates `example.com/foo`: a domain, a slash, and a path."""
    if not text:
        return [required(path)]
    domain, _, rest = text.partition("/")
    if not domain or not rest:
        return [invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = [invalid(path, domain, message) for message in names.dns_subdomain(domain)]
    if not re.fullmatch(_HTTP_PATH, rest):
        errors.append(invalid(path, rest, names.regex_error("Invalid path", _HTTP_PATH)))
    return errors


def _validate_parameters(parameters: dict[str, Any], path: str) -> Errors:
    errors = validate_reference(parameters, path)
    scope, namespace = parameters.get("scope", ""), parameters.get("namespace")
    if scope not in SCOPES:
        errors.append(not_supported(f"{path}.scope", scope, SCOPES))
    elif scope == "Cluster":
        if namespace is not None:
            errors.append(forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'"))
    elif namespace is None:
        errors.append(required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'"))
    else:
        errors += [invalid(f"{path}.namespace", namespace, message) for message in names.dns_label(namespace)]
    return errors


strategy = IngressClassStrategy()
