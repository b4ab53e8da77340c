"""Short helpers to build schemas."""

from __future__ import annotations

from typing import Any

from kubist.model.schema.catalog import by_name
from kubist.model.schema.node import Schema

Props = dict[str, Any]
_SCALARS = ("string", "integer", "number", "boolean")
_OF_MAPS = {"map": "granular"}


def obj(required: str = "", /, rules: list[Props] | None = None, **properties: Props) -> Props:
    made: Props = {"type": "object", "properties": {name.rstrip("_"): p for name, p in properties.items()}}
    if required:
        made["required"] = required.split()
    if rules:
        made["x-kubernetes-validations"] = rules
    return made


def text(longest: int = 253, **more: Any) -> Props:
    return {"type": "string", "maxLength": longest, **more}


def choice(*values: str, **more: Any) -> Props:
    return {"type": "string", "enum": list(values), **more}


def integer(least: int | None = None, most: int | None = None, **more: Any) -> Props:
    bounds = {"minimum": least, "maximum": most}
    return {
        "type": "integer",
        "format": "int32",
        **{k: v for k, v in bounds.items() if v is not None},
        **more,
    }


def boolean(**more: Any) -> Props:
    return {"type": "boolean", **more}


def items(of: Props, most: int = 16, **more: Any) -> Props:
    return {"type": "array", "items": of, "maxItems": most, **more}


def set_of(of: Props, most: int = 16) -> Props:
    return items(of, most, **{"x-kubernetes-list-type": "set"})


def keyed(of: Props, *keys: str, most: int = 16, rules: list[Props] | None = None) -> Props:
    more: Props = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    if rules:
        more["x-kubernetes-validations"] = rules
    return items({**of, "required": sorted({*of.get("required", ()), *keys})}, most, **more)


def mapping(of: Props, most: int = 32) -> Props:
    return {"type": "object", "additionalProperties": of, "maxProperties": most}


def rule(expression: str, message: str = "", **more: Any) -> Props:
    return {"rule": expression, **({"message": message} if message else {}), **more}


def conditions() -> Props:
    return keyed(
        obj(
            "type status lastTransitionTime reason message",
            type=text(316),
            status=choice("True", "False", "Unknown"),
            observedGeneration={"type": "integer", "format": "int64", "minimum": 0},
            lastTransitionTime={"type": "string", "format": "date-time"},
            reason=text(1024, minLength=1, pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
            message=text(32768),
        ),
        "type",
        most=8,
    )


def builtin(name: str, *, without: tuple[str, ...] = ()) -> Props:
    """Schema of a built-in type, written out as generators do for CRDs that embed it."""
    return _written_out(by_name(f"io.k8s.api.{name}"), without)


def _written_out(node: Schema, without: tuple[str, ...]) -> Props:
    if node.format in ("quantity", "int-or-string"):
        return {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
    if node.format in ("time", "microtime"):
        return {"type": "string", "format": "date-time"}
    match node.type:
        case "struct":
            fields = {name: field for name, field in node.fields.items() if name not in without}
            return {
                "type": "object",
                "properties": {name: _written_out(field.schema, without) for name, field in fields.items()},
            }
        case "map":
            assert node.items is not None
            return {"type": "object", "additionalProperties": _written_out(node.items, without)}
        case "list":
            assert node.items is not None
            return {
                "type": "array",
                "items": _written_out(node.items, without),
                "x-kubernetes-list-type": "atomic",
            }
        case "any":
            return {"x-kubernetes-preserve-unknown-fields": True}
    made: Props = {"type": node.type}
    if node.format in ("int32", "int64", "byte", "double"):
        made["format"] = node.format
    return made


def node_count(props: Props) -> int:
    inner = [*props.get("properties", {}).values(), props.get("items"), props.get("additionalProperties")]
    return 1 + sum(node_count(found) for found in inner if isinstance(found, dict))


def rule_count(props: Props) -> int:
    inner = [*props.get("properties", {}).values(), props.get("items"), props.get("additionalProperties")]
    own = len(props.get("x-kubernetes-validations", ()))
    return own + sum(rule_count(found) for found in inner if isinstance(found, dict))
