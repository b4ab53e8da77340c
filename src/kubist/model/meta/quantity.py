"""Quantities such as `500m`, `1Gi` and `1e3`: parsed exactly to 10⁻⁹, and formatted as the reference does.

The text of a client is kept if it looks canonical, so two spellings of one amount can exist.
"""

from __future__ import annotations

import math
import re

from kubist.base.caching import bounded_cache

NANO = 10**9
_MAX_INT64 = (1 << 63) - 1
MAX_MILLI = _MAX_INT64 // 1000
"""Largest value whose milli value fits 64 bits. Above it amounts are compared in whole units."""
_MAX_EXPONENT = 4096
"""Largest accepted exponent, because arithmetic beyond it is expensive. Real amounts end at 18."""

_WRAPPING_SHIFTS = (0, 1, 2, 3, 6, 9)
"""Powers of ten by which the reference multiplies 64-bit integers in one step, so that an overflow wraps. Others take
several steps, and an overflow gives 0."""

DECIMAL_SI, BINARY_SI, DECIMAL_EXPONENT = "DecimalSI", "BinarySI", "DecimalExponent"

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {0: ""} | {exponent: suffix for suffix, exponent in _BINARY.items()}

FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
NUMERIC_WRONG = "unable to parse numeric part of quantity"
SUFFIX_WRONG = "unable to parse quantity's suffix"


class Quantity:
    """Amount and its format. Immutable; arithmetic returns new quantities.

    The reference stores an amount in one of two forms: a 64-bit integer and an exponent, or, if `is_long`, an integer
    of any size and an exponent. The form decides only about a `value` or `milli_value` that overflows.
    """

    __slots__ = ("_text", "exponent", "format", "is_long", "nanos")

    def __init__(
        self,
        nanos: int,
        format: str = DECIMAL_SI,
        text: str = "",
        *,
        exponent: int = 0,
        is_long: bool = False,
    ) -> None:
        self.nanos = nanos
        self.format = format
        self._text = text
        self.exponent = exponent
        self.is_long = is_long

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
        is_long = self.is_long or other.is_long
        format = self.format if self.nanos else other.format
        if not is_long and not (self.nanos and other.nanos):
            addend = self if self.nanos else other
            return Quantity(addend.nanos, format, exponent=addend.exponent)
        exponent = min(self.exponent, other.exponent)
        total = self.nanos + other.nanos
        if not is_long:
            is_long = max(abs(self.nanos), abs(other.nanos), abs(total)) > _MAX_INT64 * _unit(exponent)
        return Quantity(total, format, exponent=exponent, is_long=is_long)

    def __sub__(self, other: Quantity) -> Quantity:
        return self + -other

    def __mul__(self, factor: int) -> Quantity:
        return Quantity(self.nanos * factor, self.format, exponent=self.exponent, is_long=self.is_long)

    def __neg__(self) -> Quantity:
        return self * -1

    def value(self) -> int:
        """Amount in units, rounded away from zero. Overflow as in the reference."""
        return self._scaled(0)

    def milli_value(self) -> int:
        """Amount in thousandths, rounded away from zero. Overflow as in the reference."""
        return self._scaled(-3)

    def as_int64(self) -> int | None:
        """Amount in units; None if the reference does not recognize it at once as a 64-bit integer."""
        amount = self.nanos // NANO
        return amount if not self.is_long and self.exponent >= 0 and amount == _int64(amount) else None

    def approximate_float(self) -> float:
        """Digits times a power of ten as floats, which need not give the nearest float."""
        digits = self.nanos // _unit(self.exponent)
        try:
            return float(digits) * float(f"1e{self.exponent}")
        except OverflowError:
            return math.copysign(math.inf, digits)

    def round_up(self, exponent: int) -> Quantity:
        """Amount rounded away from zero to a multiple of 10^exponent."""
        if self.exponent >= exponent and not self.is_long:
            return self
        unit = _unit(exponent)
        nanos = _away(self.nanos, unit) * unit
        return Quantity(nanos, self.format, exponent=exponent, is_long=self.is_long)

    def _scaled(self, exponent: int) -> int:
        if self.is_long:
            return self._scaled_long(exponent)
        amount = _away(self.nanos, _unit(exponent))
        wrapped = _int64(amount)
        wraps = self.exponent - exponent in _WRAPPING_SHIFTS
        return wrapped if wraps or wrapped == amount else 0

    def _scaled_long(self, exponent: int) -> int:
        digits, shift = self.nanos // _unit(self.exponent), exponent - self.exponent
        if shift <= 0:
            return _int64(_int64(digits) * 10**-shift)
        divisor = int(10**shift)
        if digits >= _MAX_INT64:
            return _int64(_away(digits, divisor))
        digits = _int64(digits)
        quotient, rest = divmod(abs(digits), divisor)
        return (-quotient if digits < 0 else quotient) + (rest != 0)


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
            nanos = unscaled * _unit(scale)
            looks_canonical = scale % 3 == 0 and not shifted.endswith("000") and shifted[0] != "0"
        else:
            nanos = (unscaled << exponent) * NANO
            looks_canonical = unscaled & 7 != 0
        text = text if looks_canonical else ""
        return Quantity(-nanos if negative else nanos, format, text, exponent=scale)
    return _exact(number, base, exponent, format)


@bounded_cache(entries=8192, key_length=64)
def canonical_quantity(text: str) -> str:
    """Quantity in the form that the reference returns."""
    return str(parse_quantity(text))


_number = re.compile(r"[+-]?(0*)([0-9]*)(?:\.([0-9]*))?").match
_signed = re.compile(r"[eEinumkKMGTP]*[+-]?[0-9]*").fullmatch


def _split(text: str) -> tuple[bool, str, str, str, str]:
    """Sign, number as written, integer digits without leading zeros, fraction and suffix."""
    match = _number(text)
    assert match is not None
    zeros, integer, fraction = match[1], match[2], match[3]
    if zeros and match.end() == len(text) and not integer and fraction is None:
        return text[0] == "-", "0", "0", "", ""
    suffix = text[match.end() :]
    if suffix and not _signed(suffix):
        raise ValueError(FORMAT_WRONG)
    return text[0] == "-", match[0], integer or "0", fraction or "", suffix


def _suffix(suffix: str) -> tuple[int, int, str]:
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix], DECIMAL_SI
    if suffix in _BINARY:
        return 2, _BINARY[suffix], BINARY_SI
    if suffix[0] in "eE":
        digits = suffix[2:] if suffix[1:2] in ("+", "-") else suffix[1:]
        significant = digits.lstrip("0") or "0"
        if digits.isdigit() and len(significant) <= 10 and (exponent := int(significant)) <= _MAX_EXPONENT:
            return 10, -exponent if suffix[1] == "-" else exponent, DECIMAL_EXPONENT
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
    exponent = -9
    if format == BINARY_SI:
        if nanos > _MAX_INT64 * NANO:
            nanos, exponent = _MAX_INT64 * NANO, 0
        if 0 < nanos < NANO:
            format = DECIMAL_SI
    return Quantity(-nanos if number[0] == "-" else nanos, format, exponent=exponent, is_long=True)


def _away(amount: int, unit: int) -> int:
    """Division that rounds away from zero."""
    return -(-amount // unit) if amount >= 0 else amount // unit


def _unit(exponent: int) -> int:
    """10^exponent in nanos."""
    return int(10 ** (exponent + 9))


def _int64(amount: int) -> int:
    """Lowest 64 bits of an integer, with sign."""
    return ((amount + _MAX_INT64 + 1) & ((1 << 64) - 1)) - _MAX_INT64 - 1


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
