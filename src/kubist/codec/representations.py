"""Which representation serves a media type, made once per resource."""

from __future__ import annotations

from typing import Any

import orjson

from kubist.codec import negotiate
from kubist.codec.negotiate import MediaType
from kubist.codec.representation import Json, ListMeta, Representation
from kubist.resources import Resource
from kubist.storage.cache import Entry

_NONE: frozenset[tuple[str, str]] = frozenset()
_TABLES = frozenset((("Table", "v1"), ("Table", "v1beta1")))
_OBJECT = _TABLES | frozenset((("PartialObjectMetadata", "v1"), ("PartialObjectMetadata", "v1beta1")))
_LIST = _TABLES | frozenset((("PartialObjectMetadataList", "v1"), ("PartialObjectMetadataList", "v1beta1")))


def transformable(resource: Resource, form: str) -> frozenset[tuple[str, str]]:
    """What an object or a list of a resource can be turned into by `as=`."""
    if form == "object":
        return _OBJECT
    return _LIST if form == "list" else _NONE


def representation(resource: Resource, media: MediaType) -> Representation:
    found = resource.representations.get(media)
    if found is None:
        found = resource.representations[media] = _make(resource, media)
    assert isinstance(found, Representation)
    return found


def _make(resource: Resource, media: MediaType) -> Representation:
    if media.serializer == negotiate.YAML:
        return Yaml(resource)
    if media.pretty:
        return PrettyJson(resource)
    return Json(resource)


class PrettyJson(Json):
    """JSON for people: indented."""

    def object(self, entry: Entry) -> bytes:
        return self.value(self.converted(entry))

    def value(self, obj: dict[str, Any]) -> bytes:
        return orjson.dumps(obj, option=orjson.OPT_INDENT_2)

    def list(self, entries: Any, meta: ListMeta) -> list[bytes]:
        whole = b"".join(super().list(entries, meta))
        return [orjson.dumps(orjson.loads(whole), option=orjson.OPT_INDENT_2)]


class Yaml(Json):
    """YAML, from the same objects. There is no YAML watch."""

    content_type = "application/yaml"

    def object(self, entry: Entry) -> bytes:
        return self.value(self.converted(entry))

    def value(self, obj: dict[str, Any]) -> bytes:
        from kubist.codec import yaml

        return yaml.dumps(obj)

    def list(self, entries: Any, meta: ListMeta) -> list[bytes]:
        return [self.value(orjson.loads(b"".join(super().list(entries, meta))))]
