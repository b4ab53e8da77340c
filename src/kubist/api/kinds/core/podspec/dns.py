"""Validation of a pod's DNS policy, DNS config, hostname and host aliases."""

from __future__ import annotations

import re

from kubist.api.kinds.shared.ip import validate_ip
from kubist.model.meta import names
from kubist.model.meta.fields import FieldError, forbidden, invalid, not_supported, required, too_long
from kubist.model.meta.object import Object

Errors = list[FieldError]

POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MAX_NAMESERVERS = 3
_MAX_SEARCHES = 32
_MAX_SEARCH_LIST = 2048
_SEARCH_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH = rf"{_SEARCH_LABEL}(\.{_SEARCH_LABEL})*"
_is_search = re.compile(_SEARCH).fullmatch
_SEARCH_MESSAGE = names.regex_error(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and "
    "must start and end with an alphanumeric character",
    _SEARCH,
    "example.com",
)


def validate_dns_policy(policy: str, path: str) -> Errors:
    if not policy:
        return [required(path)]
    return [] if policy in POLICIES else [not_supported(path, policy, POLICIES)]


def validate_dns_config(config: Object | None, policy: str, path: str) -> Errors:
    if policy == "None":
        if config is None:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(f"{path}.nameservers", why)]
    if not config:
        return []
    errors: Errors = []
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if len(servers) > _MAX_NAMESERVERS:
        why = f"must not have more than {_MAX_NAMESERVERS} nameservers"
        errors.append(invalid(f"{path}.nameservers", servers, why))
    for index, server in enumerate(servers):
        errors += validate_ip(server, f"{path}.nameservers[{index}]")
    if len(searches) > _MAX_SEARCHES:
        why = f"must not have more than {_MAX_SEARCHES} search paths"
        errors.append(invalid(f"{path}.searches", searches, why))
    if len(" ".join(searches).encode()) > _MAX_SEARCH_LIST:
        why = f"must not have more than {_MAX_SEARCH_LIST} characters (including spaces) in the search list"
        errors.append(invalid(f"{path}.searches", searches, why))
    for index, search in enumerate(searches):
        if search != ".":
            errors += _search(search.removesuffix("."), f"{path}.searches[{index}]")
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.append(required(f"{path}.options[{index}]", "must not be empty"))
    return errors


def _search(domain: str, path: str) -> Errors:
    errors: Errors = []
    if len(domain.encode()) > 253:
        errors.append(invalid(path, domain, names.max_length_error(253)))
    if not _is_search(domain):
        errors.append(invalid(path, domain, _SEARCH_MESSAGE))
    return errors


def validate_host_aliases(aliases: list[Object], path: str) -> Errors:
    errors: Errors = []
    for index, alias in enumerate(aliases):
        errors += validate_ip(alias.get("ip", ""), f"{path}[{index}].ip")
        for position, hostname in enumerate(alias.get("hostnames") or ()):
            where = f"{path}[{index}].hostnames[{position}]"
            errors += [invalid(where, hostname, problem) for problem in names.dns_subdomain(hostname)]
    return errors


def validate_hostname_override(spec: Object, path: str) -> Errors:
    hostname = spec["hostnameOverride"]
    errors: Errors = []
    if spec.get("setHostnameAsFQDN"):
        errors.append(forbidden(path, "may not be specified when setHostnameAsFQDN is true"))
    if spec.get("hostNetwork"):
        errors.append(forbidden(path, "may not be specified when hostNetwork is true"))
    if len(hostname.encode()) > 64:
        errors.append(too_long(path, 64))
    return errors + [invalid(path, hostname, problem) for problem in names.dns_subdomain(hostname)]
