"""Signer names: a domain and a path, for example `example.com/signer`."""

from __future__ import annotations

from collections.abc import Callable

from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import fields, names
from kubist.model.meta.fields import FieldError


def validate_signer_name(name: str, path: str) -> list[FieldError]:
    if not name:
        return [fields.required(path)]
    if name.count("/") != 1:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [fields.invalid(path, name, why)]
    domain, _, rest = name.partition("/")
    errors = [fields.too_long(path, 253)] if len(domain) > 253 else []
    labels = domain.split(".")
    errors += _first_bad(labels, names.dns_label, domain, path)
    if len(labels) < 2:
        why = "should be a domain with at least two segments separated by dots"
        errors.append(fields.invalid(path, domain, why))
    errors += _first_bad(rest.split("."), names.dns_subdomain, rest, path)
    if len(name) > 253 + 1 + 253 + 1 + 63:
        errors.append(fields.too_long(path, 253 + 1 + 253 + 1 + 63))
    return errors


def _first_bad(
    labels: list[str], check: Callable[[str], list[str]], value: str, path: str
) -> list[FieldError]:
    """Errors of the first invalid label only, as the reference reports them."""
    for label in labels:
        messages = check(label)
        if messages:
            return [
                fields.invalid(path, value, f"validating label {quoted(label)}: {message}")
                for message in messages
            ]
    return []
