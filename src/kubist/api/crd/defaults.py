"""Validates the defaults in a schema. Each must be a valid value of its schema, without fields that pruning would
drop."""

from __future__ import annotations

from typing import Any

import orjson

from kubist.api.crd import embedded, node
from kubist.api.crd.rules.objects import compile_rules
from kubist.api.crd.validation.schema import compile_schema
from kubist.base.jsontext.errors import DecodeError
from kubist.model.meta import fields
from kubist.model.meta.fields import FieldError
from kubist.model.schema.structural import prune

Props = dict[str, Any]
Errors = list[FieldError]


def validate_defaults(props: Props, path: str, *, pruned: bool) -> Errors:
    """`pruned`: unknown fields in a default are an error."""
    root = {**props, "x-kubernetes-embedded-resource": True}
    return _validate(root, path, pruned, in_metadata=False, root=True)


def _validate(props: Props, path: str, pruned: bool, *, in_metadata: bool, root: bool = False) -> Errors:
    errors: Errors = []
    resource = bool(props.get("x-kubernetes-embedded-resource"))
    if resource:
        in_metadata = False
    if props.get("default") is not None:
        errors += _default(props, f"{path}.default", pruned and not in_metadata, root)
    items = props.get("items")
    if isinstance(items, dict):
        errors += _validate(items, f"{path}.items", pruned, in_metadata=in_metadata)
    for name, inner in (props.get("properties") or {}).items():
        below = in_metadata or (resource and name in ("metadata", "apiVersion", "kind"))
        errors += _validate(inner, f"{path}.properties[{name}]", pruned, in_metadata=below)
    return errors


def _default(props: Props, path: str, pruned: bool, root: bool) -> Errors:
    errors: Errors = []
    default = props["default"]
    schema = node.structural(props)
    resource = schema.embedded_resource
    if pruned and prune(schema, orjson.loads(orjson.dumps(default)), root=resource):
        errors.append(fields.invalid(path, props["default"], "must not have unknown fields"))
    try:
        embedded.coerce(schema, default, root=resource)
    except DecodeError as error:
        where, _, why = str(error).partition(": ")
        at = f"{path}.{where}" if "." in where or where.isidentifier() else path
        return [*errors, fields.invalid(at, default, why or str(error))]
    problems = embedded.validate(schema, default, path, root=resource)
    if not problems:
        problems = compile_schema(props).validate(default, path)
    if not problems and (rules := compile_rules(props, root=root)) is not None:
        problems, _ = rules.validate(default, default, None, path)
        if not problems:
            problems, _ = rules.validate(default, None, None, path)
    return errors + problems
