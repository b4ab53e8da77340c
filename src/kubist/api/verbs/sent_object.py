"""SentObject: the empty lists and maps of a request body, which the stored object does not have.

Decoding drops them. kube-apiserver drops them later, so some of its rules see them. From decoding to the store the
write path works on the object `as_sent`. A step that needs another view asks for it. A view never changes the object:

* managedFields are computed from the object `as_owned`,
* the generation is computed from the object `as_stored`,
* error messages show the object `as_shown`,
* the store gets the object `as_stored`.
"""

from __future__ import annotations

from kubist.model.meta.object import Object
from kubist.model.schema.decode import decode
from kubist.model.schema.node import Schema
from kubist.model.schema.sent_values import (
    ABSENT,
    MEANT,
    MEANT_OF_NEW,
    Path,
    dropped,
    marked,
    meant,
    parent,
    replaced,
)
from kubist.model.schema.strict import Decoded


class SentObject:
    """Record of the empty values in one request body. Most bodies have none and use `PLAIN`, whose views are the object
    itself."""

    __slots__ = ("_body", "_has_empty_lists", "_normalized", "_schema", "_visible")

    def __init__(self, schema: Schema, decoded: Decoded, *, new: bool) -> None:
        """`new`: the body is that of an object to create."""
        self._schema = schema
        self._body = decoded.dropped
        """Parsed body, if decoding dropped an empty value from it."""
        self._normalized = decoded.rewritten
        """Parsed body, if decoding changed a part of it."""
        self._has_empty_lists = decoded.empties
        """Whether the body has empty lists in required fields, which are stored as null."""
        self._visible: list[Path] = []
        """Empty values that a rule asks for."""
        if self._body is not None:
            self._visible = list(meant(schema, self._body, MEANT_OF_NEW if new else MEANT))

    def as_sent(self, obj: Object) -> Object:
        """The object with the empty values that a rule asks for, unless their fields have been filled in."""
        return self._with(obj, self._visible) if self._visible else obj

    def as_shown(self, obj: Object) -> Object:
        """The object with all empty values that error messages show."""
        if self._body is None:
            return obj
        return self._with(obj, list(dropped(self._schema, self._body, in_messages=True)))

    def as_stored(self, obj: Object) -> Object:
        """The object without the empty values that `as_sent` added."""
        if not self._visible:
            return obj
        gone: dict[Path, object] = {}
        for path in self._visible:
            inner = parent(obj, path)
            if isinstance(inner, dict) and not inner.get(str(path[-1]), True):
                gone[path] = ABSENT
        return replaced(obj, gone)

    def as_owned(self, obj: Object, *, new: bool) -> Object:
        """The object as managedFields see it: without the empty values that nobody owns. Lists that decoding changed
        differ from every stored list, because the client that sends one becomes its owner. It shares its metadata
        with the object."""
        stored = self.as_stored(obj)
        if new or self._normalized is None:
            return stored
        return replaced(stored, marked(self._schema, self._normalized, stored))

    def with_null_lists(self, schema: Schema, obj: Object) -> Object:
        """The object with null for every empty list in a required field. The client that sends such a list owns it, so
        this follows the computation of managedFields."""
        if not self._has_empty_lists:
            return obj
        stored = self.as_stored(obj)
        return self.as_sent({**stored, **decode(schema, stored)})

    def is_empty_within(self, fields: tuple[str, ...], obj: Object) -> bool:
        """Whether the client sent an empty value below these fields that has not been filled in since."""
        if self._body is None:
            return False
        for path in dropped(self._schema, self._body):
            if path[0] in fields:
                inner = parent(obj, path)
                if isinstance(inner, dict) and not inner.get(str(path[-1])):
                    return True
        return False

    def _with(self, obj: Object, paths: list[Path]) -> Object:
        """The object with the body's values at these paths, if their parents still exist."""
        added: dict[Path, object] = {}
        for path in paths:
            inner, sent = parent(obj, path), parent(self._body, path)
            if isinstance(inner, dict) and isinstance(sent, dict) and path[-1] not in inner:
                added[path] = sent[path[-1]]
        return replaced(obj, added)


PLAIN = SentObject(Schema("struct"), Decoded({}, []), new=False)
"""Record of a body without empty values."""
