"""JSON-schema validation of custom resources: a compiled check, and an explanation of failures.

Nearly all objects are valid. `Validator.valid` is therefore a compiled closure that returns only a bool. `Explainer`
walks an invalid value again and collects the causes in kube-apiserver's order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubist.api.crd.validation import numbers
from kubist.api.crd.validation.explain import Explainer, OldValue
from kubist.model.cel import regex
from kubist.model.cel.formats import FORMATS, format_of, types_of
from kubist.model.meta.fields import FieldError

Props = dict[str, Any]
Check = Callable[[Any], bool]


class Validator:
    """Compiled schema. `valid` and `Explainer` must accept the same values."""

    __slots__ = ("_explainer", "valid")

    def __init__(self, props: Props) -> None:
        self.valid: Check = compile_check(props)
        self._explainer = Explainer(props)

    def validate(self, value: Any, path: str = "", old: OldValue | None = None) -> list[FieldError]:
        """All errors of `value`. With `old` (the value before an update), errors in unchanged parts are
        dropped (ratcheting)."""
        if self.valid(value):
            return []
        return self._explainer.explain(value, path, old)


def compile_schema(props: Props) -> Validator:
    return Validator(props)


def compile_check(props: Props) -> Check:
    """Compiles a schema to a check. The check is true exactly when `Explainer` finds no error: change both together."""
    types, format_ = types_of(props), format_of(props)
    checks: dict[type, list[Check]] = {kind: [] for kind in (str, int, float, bool, list, dict)}
    allowed = {
        kind: numbers.fits_type(sample, types, format_) if types or format_ else True
        for kind, sample in ((str, ""), (int, 1), (float, 1.5), (bool, True), (list, []), (dict, {}))
    }
    checks[str] += _string_checks(props, format_)
    numeric = _number_check(props, types, format_)
    if numeric is not None:
        checks[int].append(numeric)
        checks[float].append(numeric)
    checks[list] += _list_checks(props)
    checks[dict] += _dict_checks(props)
    common = _common_checks(props)
    nullable = not types or bool(props.get("nullable")) or "null" in types
    null_ok = nullable and not props.get("enum")
    integer_floats = "integer" in types and not allowed[float]

    def check(value: Any) -> bool:
        if value is None:
            return null_ok
        kind = value.__class__
        if not allowed[kind] and not (integer_floats and kind is float and numbers.is_integer(value)):
            return False
        for test in checks[kind]:
            if not test(value):
                return False
        return all(test(value) for test in common) if common else True

    return check


def _pattern_check(pattern: str) -> Check:
    """Check that compiles the pattern when the first value arrives, during validation, which can leave the event
    loop."""

    def check(value: str) -> bool:
        try:
            return regex.compile_aside(pattern).search(value) is not None
        except regex.RegexError:
            return False

    return check


def _string_checks(props: Props, format_: str) -> list[Check]:
    checks: list[Check] = []
    if (longest := props.get("maxLength")) is not None:
        checks.append(lambda value: len(value) <= longest)
    if (shortest := props.get("minLength")) is not None:
        checks.append(lambda value: len(value) >= shortest)
    if pattern := props.get("pattern"):
        checks.append(_pattern_check(pattern))
    predicate = FORMATS.get(format_.replace("-", "")) if format_ else None
    if predicate is not None:
        checks.append(predicate)
    return checks


def _number_check(props: Props, types: tuple[str, ...], format_: str) -> Check | None:
    limited = any(props.get(name) is not None for name in ("minimum", "maximum", "multipleOf"))
    if not limited and not types:
        return None
    if not limited and types == ("number",) and format_ != "float":
        return None
    return lambda value: not numbers.problems(props, types, format_, value, "")


def _list_checks(props: Props) -> list[Check]:
    checks: list[Check] = []
    if isinstance(items := props.get("items"), dict):
        item = compile_check(items)
        checks.append(lambda value: all(map(item, value)))
    if (most := props.get("maxItems")) is not None:
        checks.append(lambda value: len(value) <= most)
    if (least := props.get("minItems")) is not None:
        checks.append(lambda value: len(value) >= least)
    return checks


def _dict_checks(props: Props) -> list[Check]:
    checks: list[Check] = []
    if (most := props.get("maxProperties")) is not None:
        checks.append(lambda value: len(value) <= most)
    if (least := props.get("minProperties")) is not None:
        checks.append(lambda value: len(value) >= least)
    fields = {name: compile_check(inner) for name, inner in (props.get("properties") or {}).items()}
    additional = props.get("additionalProperties")
    if required := props.get("required"):
        needed = frozenset(required)
        checks.append(lambda value: needed <= value.keys())
    if additional is False:
        checks.append(lambda value: value.keys() <= fields.keys())
    if isinstance(additional, dict):
        other = compile_check(additional)
        checks.append(lambda value: all(fields.get(key, other)(inner) for key, inner in value.items()))
    elif fields:

        def known(value: Any) -> bool:
            for key, inner in value.items():
                field = fields.get(key)
                if field is not None and not field(inner):
                    return False
            return True

        checks.append(known)
    return checks


def _common_checks(props: Props) -> list[Check]:
    checks: list[Check] = []
    if any_of := [compile_check(inner) for inner in props.get("anyOf") or ()]:
        checks.append(lambda value: any(branch(value) for branch in any_of))
    if one_of := [compile_check(inner) for inner in props.get("oneOf") or ()]:
        checks.append(lambda value: sum(branch(value) for branch in one_of) == 1)
    if all_of := [compile_check(inner) for inner in props.get("allOf") or ()]:
        checks.append(lambda value: all(branch(value) for branch in all_of))
    if (negated := props.get("not")) is not None:
        inverse = compile_check(negated)
        checks.append(lambda value: not inverse(value))
    if enum := props.get("enum"):
        checks.append(lambda value: numbers.is_one_of(value, enum))
    return checks
