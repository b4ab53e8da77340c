"""Evaluates CEL rules when objects are written: parents first, each rule with the value of its schema node as
`self`."""

from __future__ import annotations

import contextlib
from typing import Any

import orjson

from kubist.api.crd.rules.program import CompiledRule
from kubist.api.crd.rules.schema_types import SchemaType, schema_type
from kubist.api.crd.validation.explain import NOWHERE, OldValue
from kubist.base.jsontext.quoting import quoted
from kubist.base.offload import SLICE, Lengthy, leave_loop, on_loop
from kubist.model import cel
from kubist.model.cel.conversions import converter
from kubist.model.cel.escaping import escape
from kubist.model.meta import fields
from kubist.model.meta.fields import FieldError

Props = dict[str, Any]
Errors = list[FieldError]

MESSAGE_BYTES = 5 * 1024
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


class _OutOfBudget(Exception):
    """The cost budget of the object is used up; no further rule is evaluated."""


class Rules:
    """Rules of one schema node and of all nodes below it."""

    __slots__ = ("_convert", "additional", "items", "keys", "kind", "properties", "rules")

    def __init__(self, props: Props, schema: SchemaType | None) -> None:
        self.kind = props.get("type") or ""
        self.rules: list[CompiledRule] = []
        self.properties: dict[str, Rules] = {}
        self.items: Rules | None = None
        self.additional: Rules | None = None
        self.keys = tuple(props.get("x-kubernetes-list-map-keys") or ())
        if props.get("x-kubernetes-list-type") != "map":
            self.keys = ()
        self._convert = converter(schema.type) if schema is not None else None
        if schema is not None:
            self.rules = [
                CompiledRule(rule, props, schema) for rule in props.get("x-kubernetes-validations") or ()
            ]

    def validate(
        self, new: Any, old: Any, before: OldValue | None, path: str = ""
    ) -> tuple[Errors, list[str]]:
        """Errors and warnings. A failed rule is a warning if the value is unchanged and the rule does not use
        oldSelf (ratcheting)."""
        run = _Run(cel.BUDGET)
        with contextlib.suppress(_OutOfBudget):
            run.walk(self, new, old, _Correlation(before, None) if before is not None else _NO, path)
        return run.errors, run.warnings


def compile_rules(props: Props, *, root: bool) -> Rules | None:
    """Compiled rules of a schema; None if it has no rules."""
    if not _has_rules(props):
        return None
    leave_loop()  # thousands of rules take more than a second, but each schema is compiled only once
    return _compile(props, schema_type(props, resource=root))


def _has_rules(props: Props) -> bool:
    if props.get("x-kubernetes-validations"):
        return True
    inner = [*(props.get("properties") or {}).values(), props.get("items"), props.get("additionalProperties")]
    return any(_has_rules(child) for child in inner if isinstance(child, dict))


def _compile(props: Props, schema: SchemaType | None) -> Rules | None:
    if not _has_rules(props):
        return None
    rules = Rules(props, schema)
    items, additional = props.get("items"), props.get("additionalProperties")
    element = schema.element if schema is not None else None
    if isinstance(items, dict):
        rules.items = _compile(items, element)
    if isinstance(additional, dict):
        rules.additional = _compile(additional, element)
    for name, inner in (props.get("properties") or {}).items():
        escaped = escape(name)
        if schema is None:
            continue
        if escaped is not None:
            inner_schema = schema.fields.get(escaped)
        else:
            inner_schema = schema_type(inner, resource=bool(inner.get("x-kubernetes-embedded-resource")))
        if inner_schema is not None and (below := _compile(inner, inner_schema)) is not None:
            rules.properties[name] = below
    return rules


class _Correlation:
    """Old counterpart of a value, or of its nearest parent that can be matched with the old object."""

    __slots__ = ("current", "parent")

    def __init__(self, current: OldValue | None, parent: OldValue | None) -> None:
        self.current = current
        self.parent = parent

    @property
    def unchanged(self) -> bool:
        if self.current is not None:
            return self.current.unchanged
        return self.parent is not None and self.parent.unchanged

    def key(self, name: str) -> _Correlation:
        if self.current is None:
            return self
        if self.parent is None and name in ("apiVersion", "kind"):
            return _NO
        return _Correlation(self.current.key(name), self.current)

    def index(self, position: int) -> _Correlation:
        if self.current is None:
            return self
        return _Correlation(self.current.index(position), self.current)


_NO = _Correlation(None, None)


class _Run:
    """Evaluation of all rules on one object. On the event loop it raises `Lengthy` when SLICE of the budget is used
    up."""

    def __init__(self, budget: int) -> None:
        self.left = budget
        self.enough = budget - SLICE if on_loop() is not None else 0
        self.errors: Errors = []
        self.warnings: list[str] = []

    def walk(self, rules: Rules, new: Any, old: Any, correlation: _Correlation, path: str) -> None:
        if new is None:
            return
        if rules.rules:
            self._evaluate_all(rules, new, old, correlation, path)
        if isinstance(new, list):
            if rules.items is not None:
                old_items = _by_key(old, rules.keys) if rules.keys and isinstance(old, list) else {}
                for index, item in enumerate(new):
                    before = old_items.get(_key(item, rules.keys)) if old_items else None
                    self.walk(rules.items, item, before, correlation.index(index), f"{path}[{index}]")
        elif isinstance(new, dict):
            former = old if isinstance(old, dict) else {}
            if rules.additional is not None:
                for key, value in new.items():
                    where = f"{path}[{key}]"
                    self.walk(rules.additional, value, former.get(key), correlation.key(key), where)
            for key, value in new.items():
                below = rules.properties.get(key)
                if below is not None:
                    where = f"{path}.{key}" if path else key
                    self.walk(below, value, former.get(key), correlation.key(key), where)

    def _evaluate_all(self, rules: Rules, new: Any, old: Any, correlation: _Correlation, path: str) -> None:
        where = path or NOWHERE
        if self.left <= 0:
            self.errors.append(fields.invalid(where, rules.kind, OUT_OF_BUDGET))
            raise _OutOfBudget
        convert = rules._convert
        value = convert(new) if convert is not None else new
        former = convert(old) if convert is not None and old is not None else old
        for rule in rules.rules:
            if rule.error:
                self.errors.append(fields.invalid(where, rules.kind, f"rule compile error: {rule.error}"))
                continue
            if rule.program is None or (rule.uses_old and old is None and not rule.optional_old):
                continue
            variables = {"self": value}
            if rule.optional_old:
                variables["oldSelf"] = cel.Optional(former, True) if old is not None else cel.Optional()
            elif old is not None:
                variables["oldSelf"] = former
            if self._is_violated(rule, rules.kind, variables, where):
                self._report_violation(rule, rules.kind, variables, new, correlation, where)

    def _is_violated(self, rule: CompiledRule, kind: str, variables: dict[str, Any], where: str) -> bool:
        """Whether the rule evaluates to anything but true. A failed evaluation is reported, but is not a violation."""
        assert rule.program is not None
        try:
            outcome, cost = rule.program.evaluate(variables, cel.PER_CALL_LIMIT)
        except cel.CostExceeded as error:
            self._spend(cel.PER_CALL_LIMIT, where, kind)
            why = f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: "
            self.errors.append(fields.invalid(where, kind, why + rule.title))
            raise _OutOfBudget from None
        except cel.EvaluationError as error:
            self._spend(getattr(error, "cost", 0), where, kind)
            if isinstance(error, cel.NoSuchOverload):
                why = (
                    f"'{error}': call arguments did not match a supported operator, function or macro signature for "
                    f"rule: {rule.title}"
                )
            else:
                why = f"{error} evaluating rule: {rule.title}"
            self.errors.append(fields.invalid(where, kind, why))
            return False
        self._spend(cost, where, kind)
        return outcome is not True

    def _spend(self, cost: int, where: str, kind: str) -> None:
        if cost > self.left:
            self.errors.append(fields.invalid(where, kind, OUT_OF_BUDGET))
            raise _OutOfBudget
        self.left -= cost
        if self.left < self.enough:
            raise Lengthy

    def _report_violation(
        self,
        rule: CompiledRule,
        kind: str,
        variables: dict[str, Any],
        value: Any,
        correlation: _Correlation,
        where: str,
    ) -> None:
        at = where
        if rule.field:
            at = rule.field if where == NOWHERE else f"{where}.{rule.field}"
        message = self._message(rule, variables)
        value_text = "" if kind in ("object", "array") else f"{_format_value(value)}: "
        error = FieldError(rule.reason, at, _body(rule.reason, value_text, message))
        if not rule.uses_old and correlation.unchanged:
            self.warnings.append(str(error))
        else:
            self.errors.append(error)

    def _message(self, rule: CompiledRule, variables: dict[str, Any]) -> str:
        text = (rule.rule.get("message") or "").strip()
        default = text or f"failed rule: {rule.title}"
        if rule.message_program is None:
            return default
        try:
            message, cost = rule.message_program.evaluate(variables, cel.PER_CALL_LIMIT)
        except (cel.EvaluationError, cel.CostExceeded):
            return default
        self.left -= cost
        message = message.strip()
        if not message or "\n" in message or len(message.encode()) > MESSAGE_BYTES:
            return default
        return str(message)


def _format_value(value: Any) -> str:
    return quoted(value) if isinstance(value, str) else orjson.dumps(value).decode()


def _body(reason: str, value_text: str, message: str) -> str:
    match reason:
        case "FieldValueRequired":
            return f"Required value: {message}"
        case "FieldValueForbidden":
            return f"Forbidden: {message}"
        case "FieldValueDuplicate":
            return f"Duplicate value: {value_text.removesuffix(': ')}"
    return f"Invalid value: {value_text}{message}"


def _key(item: Any, keys: tuple[str, ...]) -> bytes:
    return orjson.dumps([item.get(key) for key in keys] if isinstance(item, dict) else None)


def _by_key(items: list[Any], keys: tuple[str, ...]) -> dict[bytes, Any]:
    return {_key(item, keys): item for item in items}
