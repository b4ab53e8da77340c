"""One object in the versions in which its managers wrote. A kind with one version needs no conversion."""

from __future__ import annotations

import copy
from collections.abc import Callable

from kubist.base.jsontext.errors import DecodeError
from kubist.model.meta.object import Object
from kubist.model.patch.apply.compare import Comparison, compare
from kubist.model.patch.apply.sets import Set
from kubist.model.patch.apply.typed import BadValue, Type, type_of
from kubist.model.patch.apply.validate import problems
from kubist.model.schema.decode import decode
from kubist.model.schema.node import Schema

Convert = Callable[[Object, str], tuple[Object, Schema] | None]
"""Converts an object to another version and returns it with its schema. None if the version does not exist.

The argument is a copy that may be changed; its `apiVersion` is its version. An object that is already in that
version, and may have no other field, is returned unchanged.
"""


class Versions:
    """Version of a request, and conversion from it to other versions."""

    __slots__ = ("_convert", "_schemas", "api_version", "kind", "resets_all")

    def __init__(self, api_version: str, schema: Schema, convert: Convert | None, subresource: str) -> None:
        self.api_version = api_version
        self.kind = type_of(schema)
        self.resets_all = bool(schema.name or subresource)
        """Whether the reset fields apply in all versions. For a custom resource they apply only in the version
        of the request, so a write in another version takes the status from its owner."""
        self._convert = convert
        self._schemas = {api_version: schema}

    def at(self, obj: Object, api_version: str, what: str) -> tuple[Object, Type] | None:
        """`obj` in a version, and its type there. None: the version does not exist.

        Raises `BadValue` if the result does not fit its type. `what` names the object in the message.
        """
        current = obj.get("apiVersion", self.api_version)
        if current == api_version and api_version in self._schemas:
            return obj, type_of(self._schemas[api_version])
        if self._convert is None or not self._exists(api_version):
            return None
        try:
            converted = self._convert(_whole(self._schemas[current], obj), api_version)
            if converted is None:
                return None
            schema = self._schemas[api_version] = converted[1]
            made = _whole(schema, converted[0])
        except DecodeError as error:
            raise BadValue(f"failed to convert {what}: {error}") from None
        if not schema.name and (wrong := problems(type_of(schema), made)):
            raise BadValue(f"failed to convert {what}: {wrong}")
        return made, type_of(schema)

    def _exists(self, api_version: str) -> bool:
        """Whether the version exists. Checked before the object is copied, because managedFields may name
        thousands of versions."""
        if api_version in self._schemas:
            return True
        return (
            self._convert is not None and self._convert({"apiVersion": api_version}, api_version) is not None
        )


def _whole(schema: Schema, obj: Object) -> Object:
    """Copy of an object with all fields that a kind's conversion may rely on, even if `obj` lost parts."""
    mine = copy.deepcopy(obj)
    whole: Object = decode(schema, mine) if schema.name else mine
    return whole


class Changes:
    """Changes between two objects, in any version. Each version is compared once."""

    def __init__(self, versions: Versions, old: Object, new: Object, reset: Set) -> None:
        self._versions = versions
        self._old = old
        self._new = new
        self._reset = reset
        self.here = compare(versions.kind, old, new).without(reset)
        self._known: dict[str, Comparison | None] = {}

    def at(self, api_version: str) -> Comparison | None:
        """Changes in a version. None: the object does not exist in that version."""
        if api_version == self._versions.api_version:
            return self.here
        if api_version not in self._known:
            self._known[api_version] = self._compare(api_version)
        return self._known[api_version]

    def _compare(self, api_version: str) -> Comparison | None:
        old = self._versions.at(self._old, api_version, "old object")
        new = self._versions.at(self._new, api_version, "new object")
        if old is None or new is None:
            return None
        changes = compare(old[1], old[0], new[0])
        return changes.without(self._reset) if self._versions.resets_all else changes
