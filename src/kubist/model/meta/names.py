"""Validation of names, labels and annotations, with the reference's messages.

Each check returns a list of messages, which is empty if the name is valid. Only `validate_domain_prefixed_path` returns
field errors.
"""

from __future__ import annotations

import random
import re

from kubist.base.caching import bounded_cache
from kubist.model.meta.fields import FieldError, invalid, required

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_DNS_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"

_label_match = re.compile(_LABEL).fullmatch
_subdomain_match = re.compile(_SUBDOMAIN).fullmatch
_dns_1035_match = re.compile(_DNS_1035).fullmatch
_qualified_match = re.compile(_QUALIFIED).fullmatch
_label_value_match = re.compile(_LABEL_VALUE).fullmatch
_c_identifier_match = re.compile(_C_IDENTIFIER).fullmatch
_config_key_match = re.compile(_CONFIG_KEY).fullmatch
_relaxed_env_var_match = re.compile("[ -<>-~]+").fullmatch
_port_name_match = re.compile("(?=[^a-z]*[a-z])[a-z0-9]+(?:-[a-z0-9]+)*").fullmatch
_port_name_chars_match = re.compile("[-a-z0-9]+").fullmatch
_lower_case_search = re.compile("[a-z]").search


def regex_error(what: str, regex: str, *examples: str) -> str:
    """Message for text that does not match a regular expression, with examples."""
    if not examples:
        return f"{what} (regex used for validation is '{regex}')"
    listing = " or ".join(f"'{example}'" for example in examples[:1])
    if len(examples) > 1:
        listing = ",  or ".join(f"'{example}'" for example in examples)
    return f"{what} (e.g. {listing}, regex used for validation is '{regex}')"


def max_length_error(limit: int) -> str:
    return f"must be no more than {limit} characters"


_LONGEST_KEY = 253 + 1 + 63
_MAX_63_BYTES = "must be no more than 63 bytes"
"""Message for label keys and values. The messages for other names say "characters", although nearly all limits
count bytes."""


_LABEL_MESSAGE = regex_error(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
    "end with an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_MESSAGE = regex_error(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_DNS_1035_MESSAGE = regex_error(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character",
    _DNS_1035,
    "my-name",
    "abc-123",
)
_QUALIFIED_MESSAGE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character"
)
_LABEL_VALUE_MESSAGE = regex_error(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character",
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)


def _unprefixed(name: str) -> str:
    """generateName with its trailing dash and the character before it replaced by "a", because the suffix makes
    the dash valid."""
    return name[:-2] + "a" if len(name) > 1 and name.endswith("-") else name


def dns_label(name: str, prefix: bool = False) -> list[str]:
    if prefix:
        name = _unprefixed(name)
    if len(name) <= 63 and _label_match(name):
        return []
    errors = [max_length_error(63)] if len(name.encode()) > 63 else []
    if not _label_match(name):
        subdomain = _subdomain_match(name) is not None
        errors.append("must not contain dots" if subdomain else _LABEL_MESSAGE)
    return errors


@bounded_cache(entries=1024, key_length=63)
def is_dns_label(name: str) -> bool:
    """Same as `not dns_label(name)`. Cached, for names that many requests repeat: namespaces and containers."""
    return not dns_label(name)


def dns_subdomain(name: str, prefix: bool = False) -> list[str]:
    if prefix:
        name = _unprefixed(name)
    if len(name) <= 253 and _subdomain_match(name):
        return []
    errors = [max_length_error(253)] if len(name.encode()) > 253 else []
    if not _subdomain_match(name):
        errors.append(_SUBDOMAIN_MESSAGE)
    return errors


def dns_1035_label(name: str, prefix: bool = False) -> list[str]:
    if prefix:
        name = _unprefixed(name)
    errors = [max_length_error(63)] if len(name.encode()) > 63 else []
    if not _dns_1035_match(name):
        errors.append(_DNS_1035_MESSAGE)
    return errors


def wildcard_dns_subdomain(name: str) -> list[str]:
    regex = rf"\*\.{_SUBDOMAIN}"
    errors = [max_length_error(253)] if len(name.encode()) > 253 else []
    if not re.fullmatch(regex, name):
        errors.append(
            regex_error(
                "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which "
                "must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric "
                "character",
                regex,
                "*.example.com",
            )
        )
    return errors


def path_segment(name: str, prefix: bool = False) -> list[str]:
    """Checks that a name is valid as one segment of a URL path."""
    if "/" not in name and "%" not in name and name != "." and name != "..":
        return []
    errors = [] if prefix else [f"may not be '{name}'"] if name in (".", "..") else []
    return errors + [f"may not contain '{char}'" for char in "/%" if char in name]


@bounded_cache(entries=8192, key_length=_LONGEST_KEY)
def _is_qualified(name: str) -> bool:
    head, slash, tail = name.rpartition("/")
    if len(tail) > 63 or not _qualified_match(tail):
        return False
    return not slash or (len(head) <= 253 and _subdomain_match(head) is not None)


def qualified_name(name: str) -> list[str]:
    """Checks a label or annotation key: an optional DNS subdomain and slash, then a name of at most 63 bytes."""
    # Keys repeat often, so the result for short keys is cached.
    if len(name) <= _LONGEST_KEY and _is_qualified(name):
        return []
    head, slash, tail = name.rpartition("/")
    errors = []
    if "/" in head:
        return [
            "a valid label key "
            + regex_error(_QUALIFIED_MESSAGE, _QUALIFIED, "MyName", "my.name", "123-abc")
            + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    if slash:
        if not head:
            errors.append("prefix part must be non-empty")
        else:
            errors += [f"prefix part {message}" for message in dns_subdomain(head)]
    if not tail:
        errors.append("name part must be non-empty")
    elif len(tail.encode()) > 63:
        errors.append("name part " + _MAX_63_BYTES)
    if not _qualified_match(tail):
        errors.append(
            "name part " + regex_error(_QUALIFIED_MESSAGE, _QUALIFIED, "MyName", "my.name", "123-abc")
        )
    return errors


def label_value(value: str) -> list[str]:
    if len(value) <= 63 and _label_value_match(value):
        return []
    errors = [_MAX_63_BYTES] if len(value.encode()) > 63 else []
    if not _label_value_match(value):
        errors.append(_LABEL_VALUE_MESSAGE)
    return errors


def c_identifier(name: str) -> list[str]:
    if _c_identifier_match(name):
        return []
    return [
        regex_error(
            "a valid C identifier must start with alphabetic character or '_', followed by a string of "
            "alphanumeric characters or '_'",
            _C_IDENTIFIER,
            "my_name",
            "MY_NAME",
            "MyName",
        )
    ]


def config_map_key(name: str) -> list[str]:
    errors = [max_length_error(253)] if len(name.encode()) > 253 else []
    if not _config_key_match(name):
        errors.append(
            regex_error(
                "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
                _CONFIG_KEY,
                "key.name",
                "KEY_NAME",
                "key-name",
            )
        )
    if name == ".":
        errors.append("must not be '.'")
    elif name == "..":
        errors.append("must not be '..'")
    elif name.startswith(".."):
        errors.append("must not start with '..'")
    return errors


def env_var_name(name: str) -> list[str]:
    """Checks an environment variable name: printable ASCII characters except '='."""
    if _relaxed_env_var_match(name):
        return []
    return [
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
    ]


def port_name(name: str) -> list[str]:
    if len(name) <= 15 and _port_name_match(name):
        return []
    errors = []
    if len(name) > 15:
        errors.append(max_length_error(15))
    if not _port_name_chars_match(name):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _lower_case_search(name):
        errors.append("must contain at least one letter (a-z)")
    if "--" in name:
        errors.append("must not contain consecutive hyphens")
    if name[:1] == "-" or name[-1:] == "-":
        errors.append("must not begin or end with a hyphen")
    return errors


def port_number(port: int) -> list[str]:
    return [] if 1 <= port <= 65535 else ["must be between 1 and 65535, inclusive"]


SAFE_CHARACTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Characters of generated names. There are no vowels, so that they form no words."""


def generate(base: str) -> str:
    """Name from generateName: `base` cut to 58 characters, and five random characters without vowels."""
    return base[:58] + "".join(random.choices(SAFE_CHARACTERS, k=5))


_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_is_http_path = re.compile(_HTTP_PATH).fullmatch


def validate_domain_prefixed_path(value: str, path: str) -> list[FieldError]:
    """Field errors of a path such as `acme.io/foo`."""
    if not value:
        return [required(path)]
    domain, _, rest = value.partition("/")
    if not domain or not rest:
        return [invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = [invalid(path, domain, message) for message in dns_subdomain(domain)]
    if not _is_http_path(rest):
        errors.append(invalid(path, rest, regex_error("Invalid path", _HTTP_PATH)))
    return errors
