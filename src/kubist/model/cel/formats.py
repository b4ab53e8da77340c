"""String formats of schemas as predicates. An unknown format is not checked."""

from __future__ import annotations

import base64
import binascii
import contextlib
import ipaddress
import re
from collections.abc import Callable
from email.utils import parseaddr
from typing import Any
from urllib.parse import urlsplit

from kubist.model.cel import regex
from kubist.model.meta import durations

Predicate = Callable[[str], bool]

_HOST = (
    r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)"
    r"|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$"
)
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")
_LONG_DURATION = re.compile(r"(?<![0-9])[0-9]++[\t\n\f\r ]*+([A-Za-zµ]+)")
"""Matches only from the first digit of a number. From a later digit a failed match would fail again, after reading all
digits again."""
_UNITS = (
    ("ns", "nano"),
    ("us", "µs", "micro"),
    ("ms", "milli"),
    ("s", "sec"),
    ("m", "min"),
    ("h", "hr", "hour"),
    ("d", "day"),
    ("w", "wk", "week"),
)
_MAC = re.compile(
    r"[0-9a-fA-F]{2}([:-])[0-9a-fA-F]{2}(\1[0-9a-fA-F]{2}){4}((\1[0-9a-fA-F]{2}){2}|(\1[0-9a-fA-F]{2}){14})?"
    r"|[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}((\.[0-9a-fA-F]{4})|(\.[0-9a-fA-F]{4}){7})?"
)
_CARD = re.compile(
    r"(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})"
)
_COLOUR = r"\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"
_LONGEST_EMAIL = 1000
"""Maximum length, longer than any usable address, because `parseaddr` takes quadratic time."""
_ATOM = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.\x80-\U0010ffff-]+")


def _matches(pattern: str) -> Predicate:
    find = re.compile(pattern, re.ASCII).fullmatch
    return lambda text: find(text) is not None


def uri(text: str) -> bool:
    """Absolute URI or absolute path."""
    if not text or any(char <= " " or char == "\x7f" for char in text):
        return False
    if re.search("%(?![0-9A-Fa-f]{2})", text):
        return False
    if text.startswith("/"):
        return True
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return bool(parts.scheme)


def email(text: str) -> bool:
    if len(text) > _LONGEST_EMAIL:
        return False
    try:
        _, address = parseaddr(text)
    except RecursionError:  # comments in comments
        return False
    local, at, domain = address.rpartition("@")
    if not at or not local or not domain or text.endswith((",", ";")) or "," in text:
        return False
    if domain.startswith("[") and domain.endswith("]"):
        return True
    if not _ATOM.fullmatch(domain) or domain.startswith(".") or domain.endswith(".") or ".." in domain:
        return False
    if local.startswith('"') and local.endswith('"'):
        return True
    return bool(_ATOM.fullmatch(local)) and ".." not in local and local[0] != "." and local[-1] != "."


def hostname(text: str) -> bool:
    if not regex.compile(_HOST).search(text) or len(text.encode()) > 255:
        return False
    return all(len(part.encode()) <= 63 for part in text.split("."))


def _unpadded(text: str) -> str:
    """IPv4 address without leading zeros, which the reference ignores here."""
    return ".".join(part.lstrip("0") or "0" if part.isdigit() else part for part in text.split("."))


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    if "%" in text or not text.isascii():
        return None
    try:
        if ":" in text:
            head, colon, tail = text.rpartition(":")
            return ipaddress.ip_address(head + colon + _unpadded(tail) if "." in tail else text)
        return ipaddress.ip_address(_unpadded(text)) if text.count(".") == 3 else None
    except ValueError:
        return None


def ipv4(text: str) -> bool:
    return "." in text and _address(text) is not None


def ipv6(text: str) -> bool:
    return ":" in text and _address(text) is not None


def cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    ip = _address(address)
    if not slash or ip is None or not (length.isascii() and length.isdigit()):
        return False
    return len(length) < 4 and int(length) <= (32 if ip.version == 4 else 128)


def isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        return False
    values = [10 if char == "X" else int(char) for char in digits]
    return sum((index + 1) * value for index, value in enumerate(values)) % 11 == 0


def isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch("[0-9]{13}", digits):
        return False
    return sum(int(char) * (3 if index % 2 else 1) for index, char in enumerate(digits)) % 10 == 0


def credit_card(text: str) -> bool:
    digits = re.sub("[^0-9]+", "", text)
    if not _CARD.fullmatch(digits):
        return False
    total = 0
    for index, char in enumerate(reversed(digits)):
        value = int(char) * (2 if index % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def byte(text: str) -> bool:
    """Base64 with padding."""
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return bool(text)


def date(text: str) -> bool:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text, re.ASCII):
        return False
    year, month, day = (int(part) for part in text.split("-"))
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return 1 <= month <= 12 and 1 <= day <= days[month - 1]


def date_time(text: str) -> bool:
    day, t, rest = text.lower().partition("t")
    if not t or not date(day):
        return False
    match = _TIME.fullmatch(rest.partition("t")[0])
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def duration(text: str) -> bool:
    with contextlib.suppress(ValueError):
        durations.parse(text)
        return True
    for match in _LONG_DURATION.finditer(text):
        unit = match[1].lower()
        if any(unit in variants or unit.startswith(variants[-1]) for variants in _UNITS):
            return True
    return False


_UUID = "[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?%s-?%s-?[0-9a-fA-F]{12}"
_ANY4, _VARIANT = "[0-9a-fA-F]{4}", "[89abAB][0-9a-fA-F]{3}"

FORMATS: dict[str, Predicate] = {
    "bsonobjectid": _matches("[0-9a-fA-F]{24}"),
    "uri": uri,
    "email": email,
    "hostname": hostname,
    "ipv4": ipv4,
    "ipv6": ipv6,
    "cidr": cidr,
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "uuid": _matches(_UUID % (_ANY4, _ANY4)),
    "uuid3": _matches(_UUID % ("3[0-9a-fA-F]{3}", _ANY4)),
    "uuid4": _matches(_UUID % ("4[0-9a-fA-F]{3}", _VARIANT)),
    "uuid5": _matches(_UUID % ("5[0-9a-fA-F]{3}", _VARIANT)),
    "isbn": lambda text: isbn10(text) or isbn13(text),
    "isbn10": isbn10,
    "isbn13": isbn13,
    "creditcard": credit_card,
    "ssn": _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _matches("#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matches(rf"rgb\({_COLOUR},{_COLOUR},{_COLOUR}\)"),
    "byte": byte,
    "password": lambda _text: True,
    "date": date,
    "duration": duration,
    "datetime": date_time,
    "k8sshortname": _matches("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"),
    "k8slongname": lambda text: (
        len(text) <= 253
        and _matches(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")(text)
    ),
}
NUMERIC = {"integer": ("int32", "int64"), "number": ("float", "double")}


def types_of(props: dict[str, Any]) -> tuple[str, ...]:
    """Types that a schema allows; empty for all."""
    if props.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (props["type"],) if props.get("type") else ()


def format_of(props: dict[str, Any]) -> str:
    """The format to check; empty if it is unknown for the type."""
    format_: str = props.get("format") or ""
    types = types_of(props)
    return format_ if format_ and recognized(types[0] if len(types) == 1 else "", format_) else ""


def recognized(type_: str, format_: str) -> bool:
    """Whether a format is known for a type."""
    if type_ in ("", "string"):
        return format_.replace("-", "") in FORMATS
    return format_ in NUMERIC.get(type_, ())
