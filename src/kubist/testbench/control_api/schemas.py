"""Parts of the OpenAPI schemas of the control API."""

from __future__ import annotations

from kubist.model.meta.object import Object

DURATION: Object = {
    "oneOf": [{"type": "string"}, {"type": "number"}],
    "description": "Duration such as 90s or 1h30m, or a number of seconds.",
}


def text(about: str) -> Object:
    return {"type": "string", "description": about}


def count(about: str, least: int = 1) -> Object:
    return {"type": "integer", "minimum": least, "description": about}


def texts(about: str) -> Object:
    """One string, or several of which one must match."""
    one_or_more = [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]
    return {"oneOf": one_or_more, "description": about}


def closed(properties: Object, *required: str) -> Object:
    """Object that has no other fields."""
    found: Object = {"type": "object", "properties": properties, "additionalProperties": False}
    return found | {"required": list(required)} if required else found


def list_of(schema: str) -> Object:
    """Object with the field `items`."""
    return closed({"items": {"type": "array", "items": {"$ref": f"#/components/schemas/{schema}"}}}, "items")
