"""Explains why a value does not fit its schema: causes in kube-apiserver's order, without duplicates.

Each schema also counts how many of its parts matched. If all alternatives of an anyOf or oneOf fail, the
causes of the alternative with the highest count are reported.
"""

from __future__ import annotations

from typing import Any

import orjson

from kubist.api.crd.validation import numbers
from kubist.base.jsontext.quoting import quoted
from kubist.model.cel import regex
from kubist.model.cel.formats import FORMATS, format_of, types_of
from kubist.model.meta import fields
from kubist.model.meta.fields import FieldError
from kubist.model.meta.numerals import go_float

Props = dict[str, Any]
NOWHERE = "<nil>"
"""Field of a cause if kube-apiserver names no field."""


class OldValue:
    """A part of the new object with its counterpart in the old object. None replaces it if there is no counterpart."""

    def __init__(self, new: Any, old: Any, props: Props | None) -> None:
        self.new = new
        self.old = old
        self.props = props or {}
        self._equal: bool | None = None
        self._by_identity: dict[bytes | None, Any] | None = None

    @property
    def unchanged(self) -> bool:
        if self._equal is None:
            self._equal = numbers.same(self.new, self.old) if self.new is not None else self.old is None
        return self._equal

    def key(self, name: str) -> OldValue | None:
        if not isinstance(self.old, dict) or not isinstance(self.new, dict):
            return None
        if name not in self.old or name not in self.new:
            return None
        props = (self.props.get("properties") or {}).get(name)
        if props is None and isinstance(self.props.get("additionalProperties"), dict):
            props = self.props["additionalProperties"]
        if props is None:
            return None
        return OldValue(self.new[name], self.old[name], props)

    def index(self, position: int) -> OldValue | None:
        """Items of lists of type map are matched by their keys. Items of other lists are matched only if the
        list is unchanged."""
        if not isinstance(self.old, list) or not isinstance(self.new, list):
            return None
        items = self.props.get("items")
        if not isinstance(items, dict):
            return None
        kind = self.props.get("x-kubernetes-list-type")
        if kind == "map":
            keys = tuple(self.props.get("x-kubernetes-list-map-keys") or ())
            if self._by_identity is None:
                self._by_identity = {_identity(item, keys): item for item in reversed(self.old)}
            identity = _identity(self.new[position], keys)
            if identity is None or identity not in self._by_identity:
                return None
            return OldValue(self.new[position], self._by_identity[identity], items)
        if kind == "set" or position >= len(self.old) or not self.unchanged:
            return None
        return OldValue(self.new[position], self.old[position], items)


def _identity(item: Any, keys: tuple[str, ...]) -> bytes | None:
    if not isinstance(item, dict):
        return None
    return orjson.dumps([item.get(key) for key in keys])


class _Result:
    """Causes so far, and the count of matched parts."""

    __slots__ = ("errors", "fitted")

    def __init__(self) -> None:
        self.errors: dict[tuple[str, str], FieldError] = {}
        self.fitted = 0

    def add(self, reason: str, path: str, body: str, *, key: str = "") -> None:
        where = path.removeprefix(".") or NOWHERE
        self.errors.setdefault((path, key or body), FieldError(reason, where, body))

    def invalid(self, path: str, value: Any, message: str) -> None:
        if isinstance(value, float):
            body = f"Invalid value: {go_float(value)}: {message}"
        else:
            body = fields.invalid("", value, message).body
        self.add("FieldValueInvalid", path, body, key=message)

    def nowhere(self, message: str) -> None:
        self.errors.setdefault(
            ("", message), FieldError("FieldValueInvalid", NOWHERE, f'Invalid value: "": {message}')
        )

    def merge(self, other: _Result) -> None:
        for key, error in other.errors.items():
            self.errors.setdefault(key, error)
        self.fitted += other.fitted


class Explainer:
    """Explains values of one schema."""

    def __init__(self, props: Props) -> None:
        self.props = props

    def explain(self, value: Any, path: str = "", old: OldValue | None = None) -> list[FieldError]:
        """`path` is prepended to the field of every error."""
        result = _ratcheted(self.props, value, "", old)
        if not path:
            return list(result.errors.values())
        return [
            FieldError(error.reason, _below(path, error.field), error.body)
            for error in result.errors.values()
        ]


def _below(path: str, field: str) -> str:
    return path if field == NOWHERE else f"{path}.{field}"


def _ratcheted(props: Props, value: Any, path: str, old: OldValue | None) -> _Result:
    result = _explain(props, value, path, old)
    if result.errors and old is not None and old.unchanged:
        forgiven = _Result()
        forgiven.fitted = result.fitted
        return forgiven
    return result


def _explain(props: Props, value: Any, path: str, old: OldValue | None) -> _Result:
    result = _Result()
    types, format_ = types_of(props), format_of(props)
    if value is None:
        if types and "null" not in types and not props.get("nullable"):
            _wrong_type(result, path, types, "null")
        else:
            result.fitted += 1
        _enum(props, value, path, result)
        return result
    value = numbers.native(value)
    if types or format_:
        if numbers.fits_type(value, types, format_):
            result.fitted += 1
        else:
            kind = value.__class__
            value_format = _VALUE_FORMATS.get(kind, "")
            if format_ and kind not in (str, list) and value_format != format_:
                _wrong_type(result, path, (format_,), value_format)
            else:
                _wrong_type(result, path, types or (format_,), numbers.TYPE_NAMES[kind])
        result.fitted += 1
    _junctors(props, value, path, result, old)
    result.fitted += 2
    if isinstance(value, str):
        _string(props, value, path, result)
        result.fitted += 1
        _string_format(format_, value, path, result)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        for code, message in numbers.problems(props, types, format_, value, path):
            if code:
                result.invalid(path, value, message)
            else:
                result.nowhere(message)
        result.fitted += 2
    elif isinstance(value, list):
        _list(props, value, path, result, old)
        result.fitted += 2
    _enum(props, value, path, result)
    result.fitted += 1
    if isinstance(value, dict):
        _dict(props, value, path, result, old)
        result.fitted += 1
    result.fitted += 1
    return result


_VALUE_FORMATS = {int: "int64", float: "float64"}


def _wrong_type(result: _Result, path: str, types: tuple[str, ...], actual: str) -> None:
    message = f"{path} in body must be of type {','.join(types)}: {quoted(actual)}"
    result.add("FieldValueTypeInvalid", path, f"Invalid value: {quoted(actual)}: {message}", key=message)


def _enum(props: Props, value: Any, path: str, result: _Result) -> None:
    enum = props.get("enum")
    if enum and not numbers.is_one_of(value, enum):
        choices = [item if isinstance(item, str) else orjson.dumps(item).decode() for item in enum]
        result.add("FieldValueNotSupported", path, fields.not_supported("", value, choices).body, key="enum")


def _string(props: Props, value: str, path: str, result: _Result) -> None:
    longest, shortest, pattern = props.get("maxLength"), props.get("minLength"), props.get("pattern")
    if longest is not None and len(value) > longest:
        result.add("FieldValueTooLong", path, fields.too_long("", longest).body)
    elif shortest is not None and len(value) < shortest:
        result.invalid(path, value, f"{path} in body should be at least {shortest} chars long")
    elif pattern:
        try:
            matches = regex.compile_aside(pattern).search(value) is not None
        except regex.RegexError as error:
            matches, pattern = False, f"{pattern}, but pattern is invalid: {error}"
        if not matches:
            result.invalid(path, value, f"{path} in body should match '{pattern}'")


def _string_format(format_: str, value: str, path: str, result: _Result) -> None:
    predicate = FORMATS.get(format_.replace("-", "")) if format_ else None
    if predicate is None:
        return
    result.fitted += 1
    if not predicate(value):
        message = f"{path} in body must be of type {format_}: {quoted(value)}"
        result.add("FieldValueTypeInvalid", path, f"Invalid value: {quoted(value)}: {message}", key=message)


def _list(props: Props, value: list[Any], path: str, result: _Result, old: OldValue | None) -> None:
    items = props.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            before = old.index(index) if old is not None else None
            result.merge(_ratcheted(items, item, f"{path}[{index}]", before))
    least, most = props.get("minItems"), props.get("maxItems")
    if least is not None and len(value) < least:
        result.invalid(path, len(value), f"{path} in body should have at least {least} items")
    if most is not None and len(value) > most:
        result.add("FieldValueTooMany", path, fields.too_many("", len(value), most).body)


def _dict(props: Props, value: dict[str, Any], path: str, result: _Result, old: OldValue | None) -> None:
    least, most = props.get("minProperties"), props.get("maxProperties")
    if least is not None and len(value) < least:
        result.invalid(path, len(value), f"{path} in body should have at least {least} properties")
    if most is not None and len(value) > most:
        result.add("FieldValueTooMany", path, fields.too_many("", len(value), most).body)
    known = props.get("properties") or {}
    additional = props.get("additionalProperties")

    def before(key: str) -> OldValue | None:
        if old is None or (not path and key in ("kind", "apiVersion")):
            return None
        return old.key(key)

    if additional is False:
        for key in value:
            if key not in known:
                result.invalid(path, key, f"{path}.{key} in body is a forbidden property")
    elif isinstance(additional, dict):
        for key, inner in value.items():
            if key not in known:
                result.merge(_ratcheted(additional, inner, f"{path}.{key}", before(key)))
    for key, inner in known.items():
        if key in value:
            at = f"{path}.{key}" if path else key
            result.merge(_ratcheted(inner, value[key], at, before(key)))
    for key in props.get("required") or ():
        if key not in value:
            result.add("FieldValueRequired", f"{path}.{key}", "Required value")


def _junctors(props: Props, value: Any, path: str, result: _Result, old: OldValue | None) -> None:
    if any_of := props.get("anyOf"):
        branches = [_explain(branch, value, path, old) for branch in any_of]
        success = next((branch for branch in branches if not branch.errors), None)
        if success is None:
            result.nowhere(f'"{path}" must validate at least one schema (anyOf)')
            result.merge(_best(branches))
        else:
            result.merge(success)
    if one_of := props.get("oneOf"):
        branches = [_explain(branch, value, path, old) for branch in one_of]
        valid = [branch for branch in branches if not branch.errors]
        if len(valid) == 1:
            result.merge(valid[0])
        else:
            detail = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
            result.nowhere(f'"{path}" must validate one and only one schema (oneOf). {detail}')
            if not valid:
                result.merge(_best(branches))
    if all_of := props.get("allOf"):
        branches = [_explain(branch, value, path, old) for branch in all_of]
        for branch in branches:
            result.merge(branch)
        failed = sum(bool(branch.errors) for branch in branches)
        if failed:
            none = ". None validated" if failed == len(branches) else ""
            result.nowhere(f'"{path}" must validate all the schemas (allOf){none}')
    negated = props.get("not")
    if negated is not None and not _explain(negated, value, path, old).errors:
        result.nowhere(f'"{path}" must not validate the schema (not)')


def _best(branches: list[_Result]) -> _Result:
    """The branch with the highest count, or the first of several."""
    return max(branches, key=lambda branch: branch.fitted)
