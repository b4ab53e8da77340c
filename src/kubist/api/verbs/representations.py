"""Representation of a resource for a media type, made once per resource."""

from __future__ import annotations

from kubist.api.representation.representation import Json, Representation
from kubist.api.resources.resource import Resource
from kubist.model.codec import negotiate
from kubist.model.codec.negotiate import Endpoint, MediaType

_INCLUDED = ("", "Metadata", "Object", "None")
_BUILT_IN = Endpoint(transforms=True, table=True, literal=True)
_COLLECTION = Endpoint(transforms=True, table=True, literal=True, watched=True)
_WITHOUT_TABLE = Endpoint(transforms=True, literal=True)
_CUSTOM = Endpoint(plain=(negotiate.JSON, negotiate.YAML), transforms=True, table=True)


_PLAIN_STATUS = ("CustomResourceDefinition", "APIService", "ResourceClaim")
"""Kinds whose status cannot be shown as a table."""


def endpoint(resource: Resource, subresource: str, form: str) -> Endpoint:
    """Media types of an endpoint. `form` is "list" for lists and watches, "none" for responses that have no Table."""
    if resource.custom:
        return _CUSTOM
    if form == "none" or (subresource and not _has_table(resource, subresource)):
        return _WITHOUT_TABLE
    return _COLLECTION if form == "list" else _BUILT_IN


def _has_table(resource: Resource, subresource: str) -> bool:
    return subresource == "scale" or (subresource == "status" and resource.kind not in _PLAIN_STATUS)


def representation(resource: Resource, media: MediaType, include: str = "") -> Representation:
    """Representation for a media type. `include` is the unchecked includeObject of tables."""
    key = (media, include if media.convert_to == "Table" else "")
    found = resource.representations.get(key)
    if found is None:
        found = _make(resource, media, include)
        if include in _INCLUDED:
            resource.representations[key] = found
    assert isinstance(found, Representation)
    return found


def _make(resource: Resource, media: MediaType, include: str) -> Representation:
    if media.serializer == negotiate.PROTOBUF:
        return _messages(resource, media)
    shown = _json(resource, media, include)
    if media.serializer == negotiate.YAML:
        # Saves start-up time: most clients ask for JSON.
        from kubist.api.representation.yaml import Yaml

        return Yaml(shown)
    if media.pretty:
        # Saves start-up time: most clients ask for compact JSON.
        from kubist.api.representation.yaml import Indented

        return Indented(shown)
    return shown


def _json(resource: Resource, media: MediaType, include: str) -> Representation:
    if media.convert_to == "Table":
        # Saves start-up time: controllers ask for no tables.
        from kubist.api.tables.table import Table

        return Table(resource, media.version, include)
    if media.convert_to:
        # Saves start-up time: loaded with the first request for metadata only.
        from kubist.api.representation.partial import partial

        return partial(resource, media.convert_to, media.version)
    return Json(resource)


def _messages(resource: Resource, media: MediaType) -> Representation:
    if media.convert_to:
        # Saves start-up time: loaded with the first request for metadata only.
        from kubist.api.representation.partial import KIND, PartialProtobuf

        return PartialProtobuf(resource, media.version, lists=media.convert_to != KIND)
    # Saves start-up time: loaded with the first request for protobuf.
    from kubist.api.representation.protobuf import Protobuf

    return Protobuf(resource)
