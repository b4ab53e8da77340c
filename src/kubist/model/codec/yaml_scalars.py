"""YAML 1.1 scalars: booleans with many spellings, octal numbers, timestamps that stay strings.

Also the inverse: which strings need quotes, and the order of keys.
"""

from __future__ import annotations

import re
from base64 import b64decode
from typing import Any

from kubist.base.jsontext.errors import DecodeError

_PREFIX = "tag:yaml.org,2002:"
WORDS: dict[str, Any] = {
    word: value
    for value, words in (
        (True, "y Y yes Yes YES true True TRUE on On ON"),
        (False, "n N no No NO false False FALSE off Off OFF"),
        (None, "~ null Null NULL"),
    )
    for word in words.split()
} | {"": None}
_INFINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"(?:[Tt][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})"
    r"| [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:[.,][0-9]+)?)?"
)
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BASE60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")


class Scalar:
    """Text with a special meaning as a key: the merge key `<<`."""

    __slots__ = ("is_merge", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.is_merge = True


def resolve(tag: str | None, text: str, plain: bool) -> Any:
    """JSON value of a scalar. `plain`: it is not quoted."""
    short = tag.removeprefix(_PREFIX) if tag and tag.startswith(_PREFIX) else tag
    if short in (None, "!") and not plain:
        return text
    if short == "merge" or (plain and text == "<<"):
        return Scalar("<<")
    if short == "binary":
        try:
            return b64decode("".join(text.split()), validate=True).decode(errors="replace")
        except ValueError:
            raise DecodeError("yaml: !!binary value contains invalid base64 data") from None
    if short == "str" or (short not in (None, "!", "bool", "int", "float", "null", "timestamp")):
        return text
    value = _implicit(text)
    if short is not None and short != "!" and not _fits(short, value):
        raise DecodeError(f"yaml: cannot decode !!{_kind(value)} `{text}` as a !!{short}")
    return value


def _implicit(text: str) -> Any:
    if text in WORDS:
        return WORDS[text]
    if not text or text[0] not in "+-.0123456789":
        return text
    if _INFINITE.fullmatch(text):
        raise DecodeError(f"json: unsupported value: {_non_finite(text)}")
    if _TIMESTAMP.fullmatch(text):
        return text
    digits = text.replace("_", "")
    if match := _INTEGER.fullmatch(digits):
        sign, hexadecimal, binary, octal, decimal = match.groups()
        for part, base in ((hexadecimal, 16), (binary, 2), (octal, 8), (decimal, 10)):
            if part is not None and len(part) <= 64:
                number = int(sign + part, base)
                if -(1 << 63) <= number < 1 << (63 if sign == "-" else 64):
                    return number
    if _FLOAT.fullmatch(digits if text[0] != "." else text):
        value = float(digits)
        if value - value != 0:
            return text
        return int(value) if value.is_integer() and abs(value) < 1 << 63 else value
    return text


def _non_finite(text: str) -> str:
    if "n" in text.lower() and "nan" in text.lower():
        return "NaN"
    return "-Inf" if text[0] == "-" else "+Inf"


def _kind(value: Any) -> str:
    names = {bool: "bool", int: "int", float: "float", type(None): "null"}
    return names.get(type(value), "str")


def _fits(tag: str, value: Any) -> bool:
    kind = _kind(value)
    return kind == tag or (tag == "float" and kind == "int") or (tag == "timestamp" and kind == "str")


def key_text(key: Any) -> str:
    """JSON text of a key."""
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if key is None:
        raise DecodeError("unsupported map key of type: <nil>")
    return str(key) if isinstance(key, int) else f"{key:.7g}"


def is_plain(text: str) -> bool:
    """Whether a string can be written without quotes and is read back as a string."""
    if _INFINITE.fullmatch(text) or _TIMESTAMP.fullmatch(text) or _BASE60.fullmatch(text):
        return False
    return isinstance(_implicit(text), str)


def natural_order(left: str, right: str) -> int:
    """Natural order of keys: letters after other characters, digits by number (a2 before a10)."""
    digits = False
    for at, (one, other) in enumerate(zip(left, right, strict=False)):
        if one == other:
            digits = one.isdigit()
            continue
        if one.isalpha() and other.isalpha():
            return -1 if one < other else 1
        if one.isalpha() or other.isalpha():
            return -1 if (one.isalpha() if digits else other.isalpha()) else 1
        first, second = _number_at(left, at), _number_at(right, at)
        if first != second:
            return -1 if first < second else 1
        return -1 if one < other else 1
    return (len(left) > len(right)) - (len(left) < len(right))


def _number_at(text: str, at: int) -> tuple[int, int]:
    """Number at a position (value and length), including digits before it.

    The value wraps as a signed 64-bit integer, so very long numbers are out of order, as in the reference.
    """
    end = at
    while end < len(text) and text[end].isdigit():
        end += 1
    begin = at
    while text[at : at + 1] == "0" and begin > 0 and text[begin - 1].isdigit():
        begin -= 1
    digits = text[begin:end] if begin < at and text[begin:at].strip("0") else text[at:end]
    number = int(digits or "0") if digits.isascii() else 0
    return (number + (1 << 63)) % (1 << 64) - (1 << 63), end - at
