"""Kubernetes' additions to CEL: URLs, quantities, IP addresses, versions and named formats, as values and functions."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kubist.model.cel import formats
from kubist.model.cel.errors import EvaluationError, NoSuchOverload
from kubist.model.cel.format_strings import quote
from kubist.model.cel.functions import text_function
from kubist.model.cel.types import CIDR, FORMAT, IP, QUANTITY, SEMVER, URL
from kubist.model.cel.values import NONE, Optional
from kubist.model.meta import names
from kubist.model.meta.numerals import decimal
from kubist.model.meta.quantity import NANO, parse_quantity
from kubist.model.meta.quantity import Quantity as Amount


@dataclass(slots=True, frozen=True)
class Url:
    text: str
    cel_type = URL

    @property
    def parts(self) -> Any:
        return urlsplit(self.text)


def url(text: str) -> Url:
    if not formats.uri(text):
        raise EvaluationError(
            f'URL parse error during conversion from string: parse "{text}": invalid URI for request'
        )
    return Url(text)


def _port(value: Url) -> str:
    port = value.parts.port
    return "" if port is None else str(port)


def _hostname(value: Url) -> str:
    host = value.parts.netloc.rpartition("@")[2]
    if host.startswith("["):
        return str(host[1:].partition("]")[0])
    return str(host.partition(":")[0])


@dataclass(slots=True, frozen=True, eq=False)
class Quantity:
    amount: Amount
    is_sum: bool = False
    """Whether it is the result of `add` or `sub`. The reference cannot compare such a value on the right of ==."""
    cel_type = QUANTITY

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return False
        if other.is_sum:
            raise NoSuchOverload
        return self.amount == other.amount

    def __hash__(self) -> int:
        return hash(self.amount)


def quantity(text: str) -> Quantity:
    try:
        return Quantity(parse_quantity(text))
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def _amount(value: Any) -> Amount:
    if isinstance(value, Quantity):
        return value.amount
    if isinstance(value, int) and not isinstance(value, bool):
        return Amount(value * NANO)
    raise NoSuchOverload


def as_integer(value: Quantity) -> int:
    integer = value.amount.as_int64()
    if integer is None:
        raise EvaluationError("cannot convert value to integer")
    return integer


Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(slots=True, frozen=True)
class IpValue:
    address: Address
    cel_type = IP

    @property
    def cost_size(self) -> int:
        return math.ceil(self.address.max_prefixlen / 8)

    def cel_string(self) -> str:
        return str(self.address)


def ip(value: Any) -> IpValue:
    if isinstance(value, CidrValue):
        return IpValue(value.address)
    if not isinstance(value, str):
        raise NoSuchOverload("ip")
    return IpValue(_address(value))


def _address(text: str) -> Address:
    """Parses an address. Zones and IPv4-mapped IPv6 addresses are rejected."""
    problem = f'IP Address "{text}" parse error during conversion from string: '
    try:
        if "%" in text:
            raise ValueError("zones are not allowed")
        address = ipaddress.ip_address(text)
    except ValueError as error:
        raise EvaluationError(problem + str(error)) from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return address


@dataclass(slots=True, frozen=True)
class CidrValue:
    address: Address
    length: int
    cel_type = CIDR

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        return ipaddress.ip_network((self.address, self.length), strict=False)

    @property
    def cost_size(self) -> int:
        return math.ceil(self.length / 8)

    def cel_string(self) -> str:
        return f"{self.address}/{self.length}"


def cidr(text: str) -> CidrValue:
    address, slash, length = text.partition("/")
    if not slash or not re.fullmatch(r"0|[1-9]\d*", length, re.ASCII):
        raise EvaluationError(
            f'network address parse error during conversion from string: invalid CIDR "{text}"'
        )
    base = _address(address)
    if int(length) > base.max_prefixlen:
        raise EvaluationError(
            f'network address parse error during conversion from string: invalid CIDR "{text}"'
        )
    return CidrValue(base, int(length))


def _or_no_overload(parse: Callable[[str], Any], text: str) -> Any:
    """Parses a text. An invalid one raises NoSuchOverload instead of a parse error."""
    try:
        return parse(text)
    except EvaluationError:
        raise NoSuchOverload from None


def contains_ip(network: CidrValue, address: Any) -> bool:
    host = _or_no_overload(_address, address) if isinstance(address, str) else address.address
    return host.version == network.address.version and host in network.network


def contains_cidr(network: CidrValue, other: Any) -> bool:
    inner = _or_no_overload(cidr, other) if isinstance(other, str) else other
    if inner.address.version != network.address.version or inner.length < network.length:
        return False
    return inner.address in network.network


def _predicate(function: Callable[..., Any]) -> Callable[..., bool]:
    """Predicate: whether a string can be converted."""

    def holds(*args: Any) -> bool:
        if not isinstance(args[0], str):
            raise NoSuchOverload
        try:
            function(*args)
        except EvaluationError:
            return False
        return True

    return holds


@dataclass(slots=True, frozen=True)
class Semver:
    major: int
    minor: int
    patch: int
    pre: tuple[str, ...] = ()
    cel_type = SEMVER

    def order(self) -> tuple[Any, ...]:
        pre = tuple((0, decimal(part), "") if part.isdigit() else (1, 0, part) for part in self.pre)
        return (self.major, self.minor, self.patch, not self.pre, pre)


_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?", re.ASCII
)


def semver(text: str, normalize: bool = False) -> Semver:
    source = text
    if normalize:
        source = source.removeprefix("v")
        core, mark, rest = re.fullmatch(r"([^-+]*)([-+]?)(.*)", source, re.DOTALL).groups()  # type: ignore[union-attr]
        parts = core.split(".")
        if len(parts) < 3 and not mark:
            parts += ["0"] * (3 - len(parts))
        source = ".".join(part.lstrip("0") or "0" if part.isdigit() else part for part in parts) + mark + rest
    match = _SEMVER.fullmatch(source)
    pre = tuple((match[4] or "").split(".")) if match and match[4] else ()
    if match is None or any(not part or (part.isdigit() and part[0] == "0" and part != "0") for part in pre):
        if source.count(".") < 2:
            raise EvaluationError("No Major.Minor.Patch elements found")
        raise EvaluationError(f"Invalid character(s) found in semver {quote(text)}")
    return Semver(int(match[1]), int(match[2]), int(match[3]), pre)


def _versions(a: Any, b: Any) -> int:
    if isinstance(a, Quantity):
        first, second = _amount(a), _amount(b)
        return (first > second) - (first < second)
    if isinstance(a, Semver) and isinstance(b, Semver):
        return (a.order() > b.order()) - (a.order() < b.order())
    raise NoSuchOverload


@dataclass(slots=True, frozen=True)
class Format:
    name: str
    cel_type = FORMAT


def _simple(predicate: Callable[[str], bool], message: str) -> Callable[[str], list[str]]:
    return lambda text: [] if predicate(text) else [message]


_FORMATS: dict[str, Callable[[str], list[str]]] = {
    "dns1123Label": names.dns_label,
    "dns1123Subdomain": names.dns_subdomain,
    "dns1035Label": names.dns_1035_label,
    "qualifiedName": names.qualified_name,
    "dns1123LabelPrefix": lambda text: names.dns_label(text, True),
    "dns1123SubdomainPrefix": lambda text: names.dns_subdomain(text, True),
    "dns1035LabelPrefix": lambda text: names.dns_1035_label(text, True),
    "labelValue": names.label_value,
    "uri": _simple(formats.uri, "does not match the URI format"),
    "uuid": _simple(formats.FORMATS["uuid"], "does not match the UUID format"),
    "byte": _simple(formats.byte, "invalid base64"),
    "date": _simple(formats.date, "invalid date"),
    "datetime": _simple(formats.date_time, "invalid datetime"),
}


def validate_format(format_: Format, text: str) -> Optional:
    problems = _FORMATS[format_.name](text)
    return Optional(problems, True) if problems else NONE


def _named(name: str) -> Optional:
    return Optional(Format(name), True) if name in _FORMATS else NONE


KUBERNETES: dict[str, Callable[..., Any]] = {
    "url": text_function("url", url),
    "isURL": _predicate(url),
    "getScheme": lambda value: value.parts.scheme,
    "getHost": lambda value: value.parts.netloc.rpartition("@")[2],
    "getHostname": _hostname,
    "getPort": _port,
    "getEscapedPath": lambda value: value.parts.path,
    "getQuery": lambda value: parse_qs(value.parts.query, keep_blank_values=True),
    "quantity": text_function("quantity", quantity),
    "isQuantity": _predicate(quantity),
    "sign": lambda value: (value.amount.nanos > 0) - (value.amount.nanos < 0),
    "isGreaterThan": lambda a, b: _versions(a, b) > 0,
    "isLessThan": lambda a, b: _versions(a, b) < 0,
    "compareTo": _versions,
    "asApproximateFloat": lambda value: value.amount.approximate_float(),
    "asInteger": as_integer,
    "isInteger": lambda value: value.amount.as_int64() is not None,
    "add": lambda a, b: Quantity(_amount(a) + _amount(b), is_sum=True),
    "sub": lambda a, b: Quantity(_amount(a) - _amount(b), is_sum=True),
    "ip": ip,
    "isIP": _predicate(_address),
    "ip.isCanonical": lambda text: str(_address(text)) == text,
    "family": lambda value: value.address.version,
    "isUnspecified": lambda value: value.address.is_unspecified,
    "isLoopback": lambda value: value.address.is_loopback,
    "isLinkLocalMulticast": lambda value: value.address in _LINK_LOCAL_MULTICAST[value.address.version],
    "isLinkLocalUnicast": lambda value: value.address.is_link_local,
    "isGlobalUnicast": lambda value: (
        not (
            value.address.is_unspecified
            or value.address.is_loopback
            or value.address.is_multicast
            or value.address.is_link_local
            or str(value.address) == "255.255.255.255"
        )
    ),
    "cidr": text_function("cidr", cidr),
    "isCIDR": _predicate(cidr),
    "containsIP": contains_ip,
    "containsCIDR": contains_cidr,
    "prefixLength": lambda value: value.length,
    "masked": lambda value: CidrValue(value.network.network_address, value.length),
    "semver": semver,
    "isSemver": _predicate(semver),
    "major": lambda value: value.major,
    "minor": lambda value: value.minor,
    "patch": lambda value: value.patch,
    "validate": validate_format,
    "format.named": _named,
    **{f"format.{name}": (lambda name=name: Format(name)) for name in _FORMATS},
}
_LINK_LOCAL_MULTICAST: dict[int, Any] = {
    4: ipaddress.ip_network("224.0.0.0/24"),
    6: ipaddress.ip_network("ff02::/16"),
}
