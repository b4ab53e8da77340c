"""IP addresses and CIDRs: parsing, validation and warnings.

Older fields accept any unambiguous form (`validate_ip`), newer fields only the canonical form
(`validate_canonical_ip`). Stored values of older fields stay valid.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Container

from kubist.base.caching import bounded_cache
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta.fields import FieldError, invalid
from kubist.model.meta.numerals import decimal

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Errors = list[FieldError]

_NOT_AN_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NOT_A_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_padded_ipv4 = re.compile(r"[0-9]+(\.[0-9]+){3}").fullmatch
_prefix_length = re.compile("[0-9]+").fullmatch


def _exact(text: str) -> Address | None:
    """`text` as an address, None if it has leading zeros in IPv4 parts or a zone."""
    if "%" in text:
        return None
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _is_mapped(address: Address | None) -> bool:
    return isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None


@bounded_cache(entries=4096, key_length=64)
def parse_ip(text: str) -> Address | None:
    """Address that `text` denotes. Accepts leading zeros, and treats ::ffff:1.2.3.4 as 1.2.3.4."""
    address = _exact(text)
    if address is None and _padded_ipv4(text):
        parts = [decimal(part) for part in text.split(".")]
        if max(parts) <= 255:
            return ipaddress.IPv4Address(bytes(parts))
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def is_ipv6(text: str) -> bool:
    return isinstance(parse_ip(text), ipaddress.IPv6Address)


def _parse_cidr(text: str) -> tuple[Address, Network] | None:
    """Address and network that `text` denotes, as tolerant as `parse_ip`."""
    head, slash, tail = text.partition("/")
    address = parse_ip(head)
    if address is None or not slash or not _prefix_length(tail):
        return None
    length = decimal(tail)
    limit = 128 if ":" in head else 32
    if length > limit:
        return None
    if limit == 128 and address.version == 4:
        length -= 96
        if length < 0:
            return address, ipaddress.ip_network(f"::/{length + 96}")
    return address, ipaddress.ip_network((address, length), strict=False)


def parse_cidr(text: str) -> Network | None:
    parsed = _parse_cidr(text)
    return parsed[1] if parsed else None


def is_dual_stack(texts: list[str]) -> bool:
    """Whether both IP families are present."""
    return len({is_ipv6(text) for text in texts}) == 2


def _strict_ip(text: str, path: str) -> tuple[Address | None, Errors]:
    address = parse_ip(text)
    if address is None:
        return None, [invalid(path, text, _NOT_AN_IP)]
    exact = _exact(text)
    if exact is None:
        return address, [invalid(path, text, "must not have leading 0s")]
    if _is_mapped(exact):
        return address, [invalid(path, text, "must not be an IPv4-mapped IPv6 address")]
    return address, []


def validate_ip(text: str, path: str, old: Container[str] = ()) -> Errors:
    """Validates an address of an older field: any unambiguous form, or a text in `old`."""
    return [] if text in old else _strict_ip(text, path)[1]


def validate_canonical_ip(text: str, path: str) -> Errors:
    address, errors = _strict_ip(text, path)
    if not errors and text != str(address):
        errors = [invalid(path, text, f"must be in canonical form ({quoted(str(address))})")]
    return errors


def _strict_cidr(text: str, path: str) -> tuple[Network | None, Errors]:
    parsed = _parse_cidr(text)
    if parsed is None:
        return None, [invalid(path, text, _NOT_A_CIDR)]
    address, network = parsed
    head, _, tail = text.partition("/")
    exact = _exact(head)
    if exact is None or tail != str(decimal(tail)):
        return network, [invalid(path, text, "must not have leading 0s in IP or prefix length")]
    if _is_mapped(exact):
        return network, [invalid(path, text, "must not have an IPv4-mapped IPv6 address")]
    if address != network.network_address:
        return network, [invalid(path, text, "must not have bits set beyond the prefix length")]
    return network, []


def validate_cidr(text: str, path: str, old: Container[str] = ()) -> Errors:
    """Validates a CIDR of an older field: any unambiguous form, or a text in `old`."""
    return [] if text in old else _strict_cidr(text, path)[1]


def validate_canonical_cidr(text: str, path: str) -> Errors:
    network, errors = _strict_cidr(text, path)
    if not errors and text != str(network):
        errors = [invalid(path, text, f"must be in canonical form ({quoted(str(network))})")]
    return errors


def validate_interface_address(text: str, path: str) -> Errors:
    """Validates an address with prefix length, in canonical form."""
    parsed = _parse_cidr(text)
    if parsed is None:
        detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        return [invalid(path, text, detail)]
    canonical = f"{parsed[0]}/{parsed[1].prefixlen}"
    return (
        [] if text == canonical else [invalid(path, text, f"must be in canonical form ({quoted(canonical)})")]
    )


def is_global_unicast(address: Address) -> bool:
    """Whether the address may belong to another machine, in a private network or not."""
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
        or str(address) == "255.255.255.255"
    )


def validate_endpoint_ip(text: str, path: str) -> Errors:
    """Rejects addresses that traffic cannot be sent to: unspecified, loopback and link-local ones."""
    address = parse_ip(text)
    if address is None:
        return [invalid(path, text, "must be a valid IP address")]
    errors: Errors = []
    if address.is_unspecified:
        errors.append(invalid(path, text, f"may not be unspecified ({text})"))
    if address.is_loopback:
        errors.append(invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if address.is_link_local:
        errors.append(invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    if address in _LINK_LOCAL_MULTICAST[address.version]:
        detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        errors.append(invalid(path, text, detail))
    return errors


_LINK_LOCAL_MULTICAST: dict[int, Network] = {
    4: ipaddress.ip_network("224.0.0.0/24"),
    6: ipaddress.ip_network("ff02::/16"),
}


def ip_warnings(text: str, path: str) -> list[str]:
    """Warnings about a non-canonical form of a valid address."""
    address = parse_ip(text)
    if address is None:
        return []
    exact = _exact(text)
    if exact is None or _is_mapped(exact):
        return [f"{path}: non-standard IP address {quoted(text)} is invalid: use {quoted(str(address))}"]
    if exact.version == 6 and str(exact) != text:
        return [
            f"{path}: IPv6 address {quoted(text)} should be in RFC 5952 canonical format "
            f"({quoted(str(exact))})"
        ]
    return []


def cidr_warnings(text: str, path: str) -> list[str]:
    """Warnings about a non-canonical form of a valid CIDR."""
    parsed = _parse_cidr(text)
    if parsed is None:
        return []
    address, network = parsed
    head, _, tail = text.partition("/")
    exact = _exact(head)
    warnings = []
    if address != network.network_address:
        single = f"{address}/{network.max_prefixlen}"
        warnings.append(
            f"{path}: CIDR value {quoted(text)} is ambiguous in this context "
            f"(should be {quoted(str(network))} or {quoted(single)}?)"
        )
    if exact is None or tail != str(decimal(tail)) or _is_mapped(exact):
        canonical = quoted(str(network))
        warnings.append(f"{path}: non-standard CIDR value {quoted(text)} is invalid: use {canonical}")
    elif not warnings and exact.version == 6 and str(network) != text:
        canonical = quoted(str(network))
        warnings.append(
            f"{path}: IPv6 CIDR value {quoted(text)} should be in RFC 5952 canonical format ({canonical})"
        )
    return warnings
