"""Lending: a patch or apply builds the new object from parts of the parsed stored object, without a copy.

The stored object must stay as it is, because validation and admission compare the new object with it. A kind or an
admission plugin may change a shared part in place. Its bytes show this before anything is validated, and the update
starts again with a copy. For a pod of 1 KB the check takes 4 µs and a copy (by parsing) 25 µs, of about 400 µs that a
patch takes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import orjson

from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.storage_version import decode_entry
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Entry

Fresh = Callable[[], Awaitable[Object]]
"""Gives the stored object, to build the new one from: a copy, or a lent object that must not be changed."""


class Altered(Exception):
    """A lent object was changed in place."""


class Loan:
    """One try of an update with the stored object, lent or copied."""

    __slots__ = ("_ctx", "_lent", "_old", "entry")

    def __init__(self, ctx: ResourceRequest, entry: Entry, old: Object, lent: bool) -> None:
        self._ctx = ctx
        self._old = old
        self._lent = lent
        self.entry = entry

    async def fresh(self) -> Object:
        """The stored object: itself if it is lent, else another copy."""
        return self._old if self._lent else await decode_entry(self._ctx, self.entry)

    def is_altered(self) -> bool:
        """Whether the object was lent and changed in place."""
        if not self._lent:
            return False
        try:
            return orjson.dumps(self._old) != self.entry.json()
        except orjson.JSONEncodeError:  # a value that is replaced later, such as a repeated key
            return True


def share_unchanged(new: Object, old: Object) -> None:
    """Replace the parts of `new` that equal those of `old` by these. Later comparisons then see the same object.

    This is safe after preparation, because only metadata is changed in place from then on."""
    for field, value in old.items():
        part = new.get(field)
        if part is not value and part == value and field != "metadata":
            new[field] = value
