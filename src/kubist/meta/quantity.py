"""Quantities such as `500m`, `1Gi` and `1e3`: parsed exactly to 10⁻⁹, and formatted as the reference does.

The text of a client is kept if it looks canonical, so two spellings of one amount can exist.
"""

from __future__ import annotations

import re

from kubist.caching import bounded_cache

NANO = 10**9
_MAX_INT64 = (1 << 63) - 1
_MAX_EXPONENT = 4096
"""Largest accepted exponent, because arithmetic beyond it is expensive. Real amounts end at 18."""

DECIMAL_SI, BINARY_SI, DECIMAL_EXPONENT = "DecimalSI", "BinarySI", "DecimalExponent"

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {0: ""} | {exponent: suffix for suffix, exponent in _BINARY.items()}

FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
NUMERIC_WRONG = "unable to parse numeric part of quantity"
SUFFIX_WRONG = "unable to parse quantity's suffix"


class Quantity:
    """Amount and its format. Immutable; arithmetic returns new quantities."""

    __slots__ = ("_text", "format", "nanos")

    def __init__(self, nanos: int, format: str = DECIMAL_SI, text: str = "") -> None:
        self.nanos = nanos
        self.format = format
        self._text = text

    def __str__(self) -> str:
        if not self._text:
            self._text = _canonical(self.nanos, self.format)
        return self._text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: Quantity) -> bool:
        return self.nanos <= other.nanos

    def __gt__(self, other: Quantity) -> bool:
        return self.nanos > other.nanos

    def __ge__(self, other: Quantity) -> bool:
        return self.nanos >= other.nanos

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos + other.nanos, self.format if self.nanos else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, self.format if self.nanos else other.format)

    def __mul__(self, factor: int) -> Quantity:
        return Quantity(self.nanos * factor, self.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.format)

    def value(self) -> int:
        """Amount in units, rounded away from zero. Overflow wraps as in 64 bits."""
        return self._scaled(NANO)

    def milli_value(self) -> int:
        """Amount in thousandths, rounded away from zero. Overflow wraps as in 64 bits."""
        return self._scaled(NANO // 1000)

    def round_up(self, exponent: int) -> Quantity:
        """Amount rounded away from zero to a multiple of 10^exponent."""
        unit = 10 ** (exponent + 9)
        if self.nanos % unit == 0:
            return self
        return Quantity(_away(self.nanos, unit) * unit, self.format)

    def _scaled(self, unit: int) -> int:
        return ((_away(self.nanos, unit) + _MAX_INT64 + 1) & ((1 << 64) - 1)) - _MAX_INT64 - 1


ZERO = Quantity(0, text="0")


@bounded_cache(entries=8192, key_length=64)
def parse_quantity(text: str) -> Quantity:
    """Parsed quantity. ValueError with the reference's message if the text is invalid."""
    if text == "0":
        return ZERO
    if not text:
        raise ValueError(FORMAT_WRONG)
    negative, number, integer, fraction, suffix = _split(text)
    base, exponent, format = _suffix(suffix)
    shifted = integer + fraction
    if base == 10:
        scale = exponent - len(fraction)
        fast = len(shifted) <= 18 and scale >= -9
    else:
        fast = not fraction and 15 - len(integer) - exponent * 3 // 10 - 1 >= 0
        scale = 0
    if fast:
        unscaled = int(shifted)
        if base == 10:
            nanos = unscaled * 10 ** (scale + 9)
            looks_canonical = scale % 3 == 0 and not shifted.endswith("000") and shifted[0] != "0"
        else:
            nanos = (unscaled << exponent) * NANO
            looks_canonical = unscaled & 7 != 0
        return Quantity(-nanos if negative else nanos, format, text if looks_canonical else "")
    return _exact(number, base, exponent, format)


@bounded_cache(entries=8192, key_length=64)
def canonical_quantity(text: str) -> str:
    """Quantity in the form that the reference returns."""
    return str(parse_quantity(text))


_number = re.compile(r"[+-]?(0*)([0-9]*)(?:\.([0-9]*))?").match
_signed = re.compile(r"[eEinumkKMGTP]*[+-]?[0-9]*").fullmatch


def _split(text: str) -> tuple[bool, str, str, str, str]:
    """Sign, number as written, integer digits without leading zeros, fraction and suffix."""
    found = _number(text)
    assert found is not None
    zeros, integer, fraction = found[1], found[2], found[3]
    if zeros and found.end() == len(text) and not integer and fraction is None:
        return text[0] == "-", "0", "0", "", ""
    suffix = text[found.end() :]
    if suffix and not _signed(suffix):
        raise ValueError(FORMAT_WRONG)
    return text[0] == "-", found[0], integer or "0", fraction or "", suffix


def _suffix(suffix: str) -> tuple[int, int, str]:
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix], DECIMAL_SI
    if suffix in _BINARY:
        return 2, _BINARY[suffix], BINARY_SI
    if suffix[0] in "eE":
        digits = suffix[2:] if suffix[1:2] in ("+", "-") else suffix[1:]
        if digits.isdigit() and len(digits) <= 10 and abs(exponent := int(suffix[1:])) <= _MAX_EXPONENT:
            return 10, exponent, DECIMAL_EXPONENT
    raise ValueError(SUFFIX_WRONG)


def _exact(number: str, base: int, exponent: int, format: str) -> Quantity:
    """Amount that does not fit the fast path: beyond 64 bits or with a long fraction. Rounded away from zero to
    10⁻⁹."""
    whole, _, fraction = number.lstrip("+-").partition(".")
    if not (whole + fraction).isdigit() or len(number) > _MAX_EXPONENT:
        raise ValueError(NUMERIC_WRONG)
    unscaled = int(whole + fraction)
    scale = -len(fraction)
    if base == 10:
        scale += exponent
    else:
        unscaled <<= exponent
    scale += 9
    nanos = unscaled * 10**scale if scale >= 0 else _away(unscaled, 10**-scale)
    if format == BINARY_SI:
        nanos = min(nanos, _MAX_INT64 * NANO)
        if 0 < nanos < NANO:
            format = DECIMAL_SI
    return Quantity(-nanos if number[0] == "-" else nanos, format)


def _away(amount: int, unit: int) -> int:
    """Division that rounds away from zero."""
    return -(-amount // unit) if amount >= 0 else amount // unit


def _canonical(nanos: int, format: str) -> str:
    if nanos == 0:
        return "0"
    if format == BINARY_SI and abs(nanos) >= 1024 * NANO and nanos % NANO == 0:
        amount, exponent = nanos // NANO, 0
        while amount % 1024 == 0:
            amount //= 1024
            exponent += 10
        return f"{amount}{_BINARY_SUFFIX.get(exponent, '')}"
    amount, exponent = nanos, -9
    while amount % 1000 == 0:
        amount //= 1000
        exponent += 3
    if format == DECIMAL_EXPONENT:
        return f"{amount}e{exponent}" if exponent else str(amount)
    return f"{amount}{_DECIMAL_SUFFIX.get(exponent, '')}"
