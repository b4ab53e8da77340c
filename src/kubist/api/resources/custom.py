"""Custom resources, as the verbs see them: a version of a CRD, and the conversion between its versions.

Objects of custom resources are handled in the version of the request, those of built-in kinds in the stored version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.storage.cache.cache import Entry


class CustomVersion(Protocol):
    """One version of a CRD. `kubist.api.crd.version` implements it."""

    @property
    def group(self) -> str: ...

    @property
    def api_version(self) -> str: ...

    @property
    def spec(self) -> Object:
        """Entry of the version in `spec.versions` of the CRD."""
        ...

    def decode(self, value: Object) -> tuple[Object, list[str]]:
        """Object and unknown-field messages from a parsed body."""
        ...

    def adopt(self, merged: Object) -> Object:
        """Object from the result of an apply."""
        ...

    def coerce(self, obj: Object) -> list[str]:
        """Drops fields that the schema does not declare, in place. Returns their paths."""
        ...


class Conversion(Protocol):
    """Conversion between the versions of one CRD. `kubist.api.crd.conversion` implements it."""

    @property
    def versions(self) -> Mapping[str, CustomVersion]:
        """All versions of the CRD by apiVersion, served or not."""
        ...

    @property
    def webhook(self) -> object | None:
        """Client of the conversion webhook; None if a conversion changes only apiVersion."""
        ...

    def seen(self, entry: Entry, api_version: str) -> Entry:
        """Cached conversion of a stored object, or the stored entry if it was never converted."""
        ...

    async def entry(self, entry: Entry, api_version: str) -> Entry:
        """Stored object in another version."""
        ...

    async def converted(self, obj: Object, api_version: str) -> Object:
        """Object in another version. The given object may be changed."""
        ...

    async def to_stored_version(self, obj: Object, storage_version: str) -> Object:
        """Converted copy of an object, ready to be stored."""
        ...

    async def read_back(self, obj: Object, storage_version: str) -> Object:
        """Object as a read after the write would return it. The given object may be changed."""
        ...


class CustomResource(Protocol):
    """The part of a served resource that only custom resources have. `kubist.api.crd.strategy` implements it."""

    @property
    def version(self) -> CustomVersion: ...

    @property
    def conversion(self) -> Conversion: ...
