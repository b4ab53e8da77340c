"""Domain-prefixed paths, such as `acme.io/foo`."""

from __future__ import annotations

import re

from kubist.model.meta import names
from kubist.model.meta.fields import FieldError, invalid, required

_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_is_http_path = re.compile(_HTTP_PATH).fullmatch


def validate_domain_prefixed_path(value: str, path: str) -> list[FieldError]:
    if not value:
        return [required(path)]
    domain, _, rest = value.partition("/")
    if not domain or not rest:
        return [invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = [invalid(path, domain, message) for message in names.dns_subdomain(domain)]
    if not _is_http_path(rest):
        errors.append(invalid(path, rest, names.regex_error("Invalid path", _HTTP_PATH)))
    return errors
