"""Validates a CRD schema beyond its structure: keywords, list and map types, positions of defaults, CEL rules."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from kubist.api.crd import field_path, structural
from kubist.api.crd.rules.cost import RULE_LIMIT, SchemaCost, excess, times
from kubist.api.crd.rules.program import CompiledRule
from kubist.api.crd.rules.schema_types import schema_type
from kubist.model.meta import fields
from kubist.model.meta.fields import FieldError
from kubist.model.schema.internals import internal_form

Props = dict[str, Any]
Errors = list[FieldError]

TYPES = ("array", "boolean", "integer", "number", "object", "string")
REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
META = ("metadata", "kind", "apiVersion")
_NOT_SUPPORTED = (
    "id",
    "additionalItems",
    "patternProperties",
    "definitions",
    "dependencies",
    "$ref",
)


@dataclass(slots=True, frozen=True)
class Tolerance:
    """Checks that an update skips if the old CRD already violates them."""

    valid_types: bool = True
    atomic_sets: bool = True
    map_keys: bool = True
    cost: bool = True


@dataclass(slots=True, frozen=True)
class Where:
    """Restrictions that follow from the position of a schema node."""

    defaults: str | None = None
    """Reason why a default is forbidden here; None if it is allowed."""
    in_metadata: bool = False
    uncorrelatable: str | None = None
    """Path of the nearest list whose items cannot be matched with old items, so that rules below must not use
    oldSelf."""


@dataclass(slots=True)
class Found:
    """Errors of schemas, then of the CEL rules in them."""

    schema: Errors = field(default_factory=list)
    expressions: Errors = field(default_factory=list)

    def add(self, other: Found) -> None:
        self.schema += other.schema
        self.expressions += other.expressions

    def all(self) -> Errors:
        return self.schema + self.expressions


def validate_schema(
    props: Props | None,
    path: str,
    where: Where,
    tolerance: Tolerance,
    cost: SchemaCost | None,
    *,
    root: bool = False,
) -> Found:
    """Errors of a schema and all nested schemas. With `cost` None, CEL rules are not compiled."""
    report = Found()
    if props is None:
        return report
    errors = report.schema
    errors += _keywords(props, path, where, tolerance)
    if props.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.append(fields.forbidden(f"{path}.uniqueItems", why))
    _objects(props, path, where, tolerance, cost, root, report)
    _junctors(props, path, where, tolerance, report)
    items = props.get("items")
    if items is not None:
        inside = where
        if props.get("x-kubernetes-list-type") != "map" and where.uncorrelatable is None:
            inside = replace(where, uncorrelatable=path)
        for index, inner in enumerate([items] if isinstance(items, dict) else items):
            at = f"{path}.items" if isinstance(items, dict) else f"{path}.items[{index}]"
            below = cost.items(inner) if cost is not None else None
            report.add(validate_schema(inner, at, inside, tolerance, below))
    for name, inner in (props.get("dependencies") or {}).items():
        if isinstance(inner, dict):
            at = f"{path}.dependencies[{name}]"
            report.add(validate_schema(inner, at, where, tolerance, None))
    if props.get("x-kubernetes-preserve-unknown-fields") is False:
        why = "must be true or undefined"
        errors.append(fields.invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, why))
    errors += _map_type(props, path)
    errors += _list_type(props, path, tolerance)
    if tolerance.map_keys:
        errors += map_key_errors(props, path)
    rules = props.get("x-kubernetes-validations") or ()
    for index, rule in enumerate(rules):
        errors += _rule(props, rule, f"{path}.x-kubernetes-validations[{index}]")
    if rules and not errors and cost is not None:
        report.expressions += _expression_errors(
            props, path, cost, where.uncorrelatable, per_expression=tolerance.cost
        )
    return report


def _keywords(props: Props, path: str, where: Where, tolerance: Tolerance) -> Errors:
    errors: Errors = []
    kind = props.get("type") or ""
    if tolerance.valid_types and kind and kind not in TYPES:
        errors.append(fields.not_supported(f"{path}.type", kind, TYPES))
    if props.get("default") is not None and where.defaults is not None:
        why = f"must not be set {where.defaults}".strip()
        errors.append(fields.forbidden(f"{path}.default", why))
    for keyword in _NOT_SUPPORTED:
        value = props.get(keyword)
        if value or (value is not None and keyword in ("additionalItems", "dependencies", "$ref")):
            errors.append(fields.forbidden(f"{path}.{keyword}", f"{keyword} is not supported"))
    if kind == "null":
        why = "type cannot be set to null, use nullable as an alternative"
        errors.append(fields.forbidden(f"{path}.type", why))
    if isinstance(props.get("items"), list) and props["items"]:
        errors.append(fields.forbidden(f"{path}.items", "items must be a schema object and not an array"))
    if where.in_metadata and props.get("x-kubernetes-embedded-resource"):
        why = "must not be used inside of resource meta"
        errors.append(fields.forbidden(f"{path}.x-kubernetes-embedded-resource", why))
    return errors


def _objects(
    props: Props,
    path: str,
    where: Where,
    tolerance: Tolerance,
    cost: SchemaCost | None,
    root: bool,
    report: Found,
) -> None:
    properties, additional = props.get("properties") or {}, props.get("additionalProperties")
    if additional is not None:
        if properties and additional is not True:
            why = "additionalProperties and properties are mutual exclusive"
            report.schema.append(fields.forbidden(f"{path}.additionalProperties", why))
        inside = where
        if where.in_metadata:
            inside = replace(where, defaults="inside additionalProperties applying to object metadata")
        if isinstance(additional, dict):
            below = cost.additional(additional) if cost is not None else None
            report.add(validate_schema(additional, f"{path}.additionalProperties", inside, tolerance, below))
    for name, inner in properties.items():
        inside = where
        if (root or props.get("x-kubernetes-embedded-resource")) and name in META:
            inside = replace(inside, in_metadata=True)
            if root:
                inside = replace(inside, defaults=f"in top-level {name}")
        below = cost.property(inner) if cost is not None else None
        report.add(validate_schema(inner, f"{path}.properties[{name}]", inside, tolerance, below))


def _junctors(props: Props, path: str, where: Where, tolerance: Tolerance, report: Found) -> None:
    if props.get("not") is not None:
        report.add(validate_schema(props["not"], f"{path}.not", where, tolerance, None))
    for name in ("allOf", "oneOf", "anyOf"):
        for index, inner in enumerate(props.get(name) or ()):
            report.add(validate_schema(inner, f"{path}.{name}[{index}]", where, tolerance, None))
    for name, inner in (props.get("definitions") or {}).items():
        report.add(validate_schema(inner, f"{path}.definitions[{name}]", where, tolerance, None))


def _map_type(props: Props, path: str) -> Errors:
    errors: Errors = []
    map_type, kind = props.get("x-kubernetes-map-type"), props.get("type") or ""
    if map_type is not None and kind != "object":
        why = "must be object if x-kubernetes-map-type is specified"
        where = f"{path}.type"
        errors.append(fields.invalid(where, kind, why) if kind else fields.required(where, why))
    if map_type is not None and map_type not in ("atomic", "granular"):
        where = f"{path}.x-kubernetes-map-type"
        errors.append(fields.not_supported(where, map_type, ("atomic", "granular")))
    return errors


def _list_type(props: Props, path: str, tolerance: Tolerance) -> Errors:
    errors: Errors = []
    list_type, kind = props.get("x-kubernetes-list-type"), props.get("type") or ""
    items = props.get("items")
    if list_type is not None and kind != "array":
        why = "must be array if x-kubernetes-list-type is specified"
        where = f"{path}.type"
        errors.append(fields.invalid(where, kind, why) if kind else fields.required(where, why))
    elif tolerance.atomic_sets:
        errors += atomic_set_errors(props, path)
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        where = f"{path}.x-kubernetes-list-type"
        errors.append(fields.not_supported(where, list_type, ("atomic", "set", "map")))
    keys = props.get("x-kubernetes-list-map-keys") or []
    if keys and list_type != "map":
        where, why = (
            f"{path}.x-kubernetes-list-type",
            "must be map if x-kubernetes-list-map-keys is non-empty",
        )
        errors.append(
            fields.required(where, why) if list_type is None else fields.invalid(where, list_type, why)
        )
    if list_type != "map":
        return errors
    if not keys:
        why = "must not be empty if x-kubernetes-list-type is map"
        errors.append(fields.required(f"{path}.x-kubernetes-list-map-keys", why))
    if items is None:
        why = "must have a schema if x-kubernetes-list-type is map"
        errors.append(fields.required(f"{path}.items", why))
    elif not isinstance(items, dict):
        why = "must only have a single schema if x-kubernetes-list-type is map"
        errors.append(fields.invalid(f"{path}.items", items, why))
    elif items.get("type") != "object":
        why = "must be object if parent array's x-kubernetes-list-type is map"
        errors.append(fields.invalid(f"{path}.items.type", items.get("type", ""), why))
    else:
        errors += _key_names(items, keys, path)
    return errors


def _key_names(items: Props, keys: list[str], path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    where = f"{path}.x-kubernetes-list-map-keys"
    for key in keys:
        schema = (items.get("properties") or {}).get(key)
        if schema is None:
            errors.append(fields.invalid(where, keys, "entries must all be names of item properties"))
        elif schema.get("type") in ("array", "object"):
            why = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            errors.append(fields.invalid(f"{path}.items.properties[{key}].type", items["type"], why))
        if key in seen:
            errors.append(fields.invalid(where, keys, "must not contain duplicate entries"))
        seen.add(key)
    return errors


def atomic_set_errors(props: Props, path: str) -> Errors:
    """Items of a set must be atomic, because sets compare whole items."""
    items = props.get("items")
    if props.get("x-kubernetes-list-type") != "set" or not isinstance(items, dict):
        return []
    why = "must be atomic as item of a list with x-kubernetes-list-type=set"
    kind = items.get("type")
    if kind == "array" and items.get("x-kubernetes-list-type") not in (None, "atomic"):
        where = f"{path}.items.x-kubernetes-list-type"
        return [fields.invalid(where, items["x-kubernetes-list-type"], why)]
    if kind == "object" and items.get("x-kubernetes-map-type") != "atomic":
        where = f"{path}.items.x-kubernetes-map-type"
        return [fields.invalid(where, items.get("x-kubernetes-list-type"), why)]
    return []


def map_key_errors(props: Props, path: str) -> Errors:
    """Keys of a list map must be required or have a default, and must not be nullable."""
    items, list_type = props.get("items"), props.get("x-kubernetes-list-type")
    if not isinstance(items, dict) or list_type not in ("set", "map"):
        return []
    errors: Errors = []
    if items.get("nullable"):
        why = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        errors.append(fields.forbidden(f"{path}.items.nullable", why))
    if list_type == "set":
        return errors
    required = items.get("required") or ()
    for key in props.get("x-kubernetes-list-map-keys") or ():
        schema = (items.get("properties") or {}).get(key)
        if schema is None:
            continue
        where = f"{path}.items.properties[{key}]"
        about = "this property is in x-kubernetes-list-map-keys, so it"
        if key not in required and schema.get("default") is None:
            why = f"{about} must have a default or be a required property"
            errors.append(fields.required(f"{where}.default", why))
        if schema.get("nullable"):
            errors.append(fields.forbidden(f"{where}.nullable", f"{about} cannot be nullable"))
    return errors


def _rule(props: Props, rule: Props, path: str) -> Errors:
    errors: Errors = []
    text, message = (rule.get("rule") or "").strip(), rule.get("message") or ""
    expression, pointer = rule.get("messageExpression") or "", rule.get("fieldPath") or ""
    if not text:
        errors.append(fields.required(f"{path}.rule", "rule is not specified"))
    elif message and not message.strip():
        errors.append(fields.invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif _lines(message.strip()):
        errors.append(fields.invalid(f"{path}.message", message, "must not contain line breaks"))
    elif _lines(text) and not message.strip():
        why = "message must be specified if rule contains line breaks"
        errors.append(fields.required(f"{path}.message", why))
    if expression and not expression.strip():
        why = "messageExpression must be non-empty if specified"
        errors.append(fields.required(f"{path}.messageExpression", why))
    if rule.get("reason") is not None and rule["reason"] not in REASONS:
        errors.append(fields.not_supported(f"{path}.reason", rule["reason"], REASONS))
    if pointer:
        where = f"{path}.fieldPath"
        if not pointer.strip():
            errors.append(fields.invalid(where, pointer, "must be non-empty if specified"))
        if _lines(pointer):
            errors.append(fields.invalid(where, pointer, "must not contain line breaks"))
        if not structural.unsupported(props) and not _is_valid_pointer(pointer, props):
            errors.append(fields.invalid(where, pointer, "must be a valid path"))
    return errors


def _is_valid_pointer(pointer: str, props: Props) -> bool:
    try:
        field_path.resolve(pointer, props)
    except field_path.BadPath:
        return False
    return True


def _lines(text: str) -> bool:
    return "\n" in text or "\r" in text


def _expression_errors(
    props: Props,
    path: str,
    cost: SchemaCost,
    uncorrelatable: str | None,
    *,
    per_expression: bool,
) -> Errors:
    """Errors of the CEL rules of one schema node. `per_expression`: each expression is checked against RULE_LIMIT. The
    costs are always added to `cost.total`."""
    errors: Errors = []
    schema = schema_type(props, resource=cost.resource)
    where = f"{path}.x-kubernetes-validations"
    if schema is None:
        why = (
            "internal error: failed to construct type information for x-kubernetes-validations rules: "
            "unable to convert structural schema to CEL declarations"
        )
        return [fields.internal(where, why)]
    cardinality = cost.cardinality if cost.cardinality is not None else schema.cardinality
    for index, rule in enumerate(props["x-kubernetes-validations"]):
        at = f"{where}[{index}]"
        compiled = CompiledRule(rule, props, schema)
        price = times(compiled.cost, cardinality)
        if per_expression and price > RULE_LIMIT:
            errors.append(fields.forbidden(f"{at}.rule", excess("estimated rule cost", price, RULE_LIMIT)))
        cost.total.observe(f"{at}.rule", price)
        if compiled.error:
            errors.append(
                fields.invalid(
                    f"{at}.rule", internal_form("apiextensions.ValidationRule", rule), compiled.error
                )
            )
        if compiled.message_error:
            value = internal_form("apiextensions.ValidationRule", rule)
            errors.append(fields.invalid(f"{at}.messageExpression", value, compiled.message_error))
        elif compiled.message_program is not None:
            if per_expression and compiled.message_cost > RULE_LIMIT:
                why = excess("estimated messageExpression cost", compiled.message_cost, RULE_LIMIT)
                errors.append(fields.forbidden(f"{at}.messageExpression", why))
            cost.total.observe(f"{at}.messageExpression", compiled.message_cost)
        if compiled.uses_old:
            if uncorrelatable is not None:
                why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
                errors.append(fields.invalid(f"{at}.rule", rule["rule"], why))
        elif rule.get("optionalOldSelf") is not None:
            why = "may not be set if oldSelf is not used in rule"
            errors.append(fields.invalid(f"{at}.optionalOldSelf", rule["optionalOldSelf"], why))
    return errors
