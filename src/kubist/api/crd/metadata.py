"""ObjectMeta of custom resources and of objects embedded in them."""

from __future__ import annotations

from typing import Any

from kubist.api.crd import node
from kubist.base.jsontext.errors import DecodeError
from kubist.model.meta.object import Object
from kubist.model.schema.catalog import by_name
from kubist.model.schema.strict import decode_value

_OBJECT_META = by_name(node.OBJECT_META)


def typed_metadata(value: Any, *, lenient: bool = False) -> tuple[Object, list[str]]:
    """Decoded ObjectMeta, and the paths of its unknown fields. `lenient` drops mistyped fields instead of raising."""
    if value is None:
        return {}, []
    try:
        decoded = decode_value(_OBJECT_META, value)
    except DecodeError:
        if not lenient or not isinstance(value, dict):
            raise
        return _decodable_fields(value), []
    return decoded.object, [_path(complaint) for complaint in decoded.complaints]


def _path(complaint: str) -> str:
    return "metadata." + complaint.partition('"')[2][:-1]


def _decodable_fields(value: Object) -> Object:
    """The metadata fields that decode without error."""
    kept: Object = {}
    for name, field in value.items():
        try:
            kept |= decode_value(_OBJECT_META, {name: field}).object
        except DecodeError:
            continue
    return kept
