"""JSON Patch (RFC 6902) with the extensions of kube-apiserver's library. Only touched containers are copied.

Extensions: negative indices count from the end, `replace` of a missing member creates it, and `test` treats a
missing member as null.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import orjson

from kubist.base.http.limits import BODY_BYTES
from kubist.base.jsontext.complaints import Repeats
from kubist.base.jsontext.errors import DecodeError
from kubist.base.jsontext.json import check_depth, json_type
from kubist.model.meta.numerals import decimal
from kubist.model.patch.errors import MalformedPatch, PatchFailed, TooManyOperations
from kubist.model.patch.values import equal
from kubist.model.schema.order import with_sorted_keys

Operation = dict[str, Any]

MAX_OPERATIONS = 10_000

_MEMBERS = frozenset({"op", "path", "from", "value"})
_INDEX = re.compile(r"[+-]?[0-9]+")


def operations(document: Any, *, checked: bool = True, repeats: Repeats | None = None) -> list[Operation]:
    """Operations of a parsed document. `checked`: field validation is not Ignore, so member types are
    validated. `repeats` has the objects with duplicate keys."""
    into = ("error decoding patch: ", "handlers.jsonPatchOp", "[]handlers.jsonPatchOp")
    prefix, element, whole = into if checked else ("", "jsonpatch.Operation", "jsonpatch.Patch")
    if document is None:
        return []
    if not isinstance(document, list):
        what = f"json: cannot unmarshal {json_type(document)} into Go value of type {whole}"
        raise MalformedPatch(prefix + what)
    for operation in document:
        if operation is not None and not isinstance(operation, dict):
            what = f"json: cannot unmarshal {json_type(operation)} into Go value of type {element}"
            raise MalformedPatch(prefix + what)
        if checked and operation:
            _check_members(repeats.pairs(operation) if repeats else operation.items())
    if len(document) > MAX_OPERATIONS:
        raise TooManyOperations(MAX_OPERATIONS, len(document))
    return [operation or {} for operation in document]


def _check_members(members: Iterable[tuple[str, Any]]) -> None:
    for member, value in members:
        if value is not None and not isinstance(value, str) and member in ("op", "path", "from"):
            into = f"Go struct field jsonPatchOp.{member} of type string"
            raise MalformedPatch(
                f"error decoding patch: json: cannot unmarshal {json_type(value)} into {into}"
            )


def unknown_members(patch: list[Operation]) -> list[str]:
    """Unknown members of the operations, as field validation reports them."""
    return [
        f'json patch unknown field "[{index}].{member}"'
        for index, operation in enumerate(patch)
        for member in operation
        if member not in _MEMBERS
    ]


def apply(document: Any, patch: list[Operation], repeats: Repeats | None = None) -> Any:
    """`document` after all operations. The argument is not modified; the result shares untouched parts.

    `repeats` has the objects of the patch with duplicate keys. Objects that an operation reads are removed from
    it, because the text of the others becomes part of the document.
    """
    target = _Target(document, repeats if repeats is not None else Repeats())
    for operation in patch:
        kind = operation.get("op")
        perform = _OPERATIONS.get(kind) if isinstance(kind, str) else None
        if perform is None:
            raise PatchFailed(f"Unexpected kind: {kind}")
        try:
            perform(target, operation)
        except MissingPath as missing:
            raise PatchFailed(_MISSING[str(kind)].format(missing.path)) from None
        except (RecursionError, orjson.JSONEncodeError):  # moves and copies nest values into each other
            raise PatchFailed("exceeded max depth") from None
    if any(map(_can_nest, patch)):
        try:
            check_depth(target.root)
        except DecodeError as error:
            raise PatchFailed(str(error)) from None
    target.repeats.sorted = target.touched
    return target.root


def _can_nest(operation: Operation) -> bool:
    """Whether an operation can make the document deeper."""
    return operation["op"] in ("move", "copy") or isinstance(operation.get("value"), (dict, list))


class MissingPath(PatchFailed):
    """Path through a missing member."""

    def __init__(self, path: str) -> None:
        super().__init__(f"doc is missing path: {path}: missing value")
        self.path = path


_MISSING = {
    "add": 'add operation does not apply: doc is missing path: "{}": missing value',
    "remove": 'remove operation does not apply: doc is missing path: "{}": missing value',
    "replace": "replace operation does not apply: doc is missing path: {}: missing value",
    "move": "move operation does not apply: doc is missing destination path: {}: missing value",
    "copy": "copy operation does not apply: doc is missing destination path: {}: missing value",
    "test": "test operation does not apply: is missing path: {}: missing value",
}
_MISSING_FROM = "{} operation does not apply: doc is missing from path: {}: missing value"


class _Target:
    """Document being patched. A container is copied on its first write and then belongs to the patch."""

    __slots__ = ("copied_bytes", "ours", "repeats", "root", "touched")

    def __init__(self, root: Any, repeats: Repeats) -> None:
        self.root = root
        self.repeats = repeats
        self.ours: set[int] = set()
        self.touched: set[int] = set()
        """Containers that are `ours`, or that were read. The reference writes the text of both again."""
        self.copied_bytes = 0

    def _own(self, container: Any) -> Any:
        if id(container) in self.ours:
            return container
        mine = container.copy()
        self.ours.add(id(mine))
        self.touched.add(id(mine))
        return mine

    def writable(self, path: str) -> tuple[Any, str]:
        """Container of the last segment of `path`, safe to modify, and that segment."""
        segments = _segments(path)
        node = self.root = self._own(self.root)
        for segment in segments[:-1]:
            child = _get(node, segment)
            if not isinstance(child, (dict, list)):
                raise MissingPath(path)
            child = self._own(child)
            node[segment if isinstance(node, dict) else _index(segment, len(node))] = child
            node = child
        return node, segments[-1]

    def read(self, path: str) -> Any:
        segments = _segments(path)
        node = self.root
        for segment in segments[:-1]:
            node = _get(node, segment)
            if not isinstance(node, (dict, list)):
                raise MissingPath(path)
            self.touched.add(id(node))
            self.repeats.forget(node)
        return _get(node, segments[-1])

    def read_all(self, value: Any) -> None:
        """Records that a value and everything in it was read."""
        if isinstance(value, (dict, list)):
            self.touched.add(id(value))
            for inner in value.values() if isinstance(value, dict) else value:
                self.read_all(inner)


def _segments(path: str) -> list[str]:
    segments = path.split("/")
    if len(segments) < 2:
        raise MissingPath(path)
    if "~" in path:
        return [segment.replace("~1", "/").replace("~0", "~") for segment in segments[1:]]
    return segments[1:]


def _index(segment: str, length: int) -> int:
    """Index of an existing element in a list of `length` elements."""
    if not _INDEX.fullmatch(segment):
        raise PatchFailed(f"value was not a proper array index: {segment}")
    index = decimal(segment)
    if not -length <= index < length:
        raise PatchFailed(f"Unable to access invalid index: {segment}")
    return index + length if index < 0 else index


def _get(node: Any, segment: str) -> Any:
    if isinstance(node, dict):
        return node.get(segment)
    return node[_index(segment, len(node))]


def _member(operation: Operation, member: str) -> str:
    value = operation.get(member)
    if not isinstance(value, str):
        raise PatchFailed(f"operation missing {member} field")
    return value


def _insert(target: _Target, path: str, value: Any) -> None:
    node, segment = target.writable(path)
    if isinstance(node, dict):
        node[segment] = value
    elif segment == "-":
        node.append(value)
    else:
        node.insert(_index(segment, len(node) + 1), value)


def _remove(target: _Target, path: str) -> Any:
    node, segment = target.writable(path)
    if isinstance(node, list):
        return node.pop(_index(segment, len(node)))
    if segment not in node:
        why = f"Unable to remove nonexistent key: {segment}: missing value"
        raise PatchFailed(f"error in remove for path: '{path}': {why}")
    return node.pop(segment)


def _do_add(target: _Target, operation: Operation) -> None:
    _insert(target, _member(operation, "path"), operation.get("value"))


def _do_remove(target: _Target, operation: Operation) -> None:
    _remove(target, _member(operation, "path"))


def _do_replace(target: _Target, operation: Operation) -> None:
    path, value = _member(operation, "path"), operation.get("value")
    if path == "":
        if not isinstance(value, (dict, list)):
            raise PatchFailed("replace operation value must be object or array")
        target.root = value
        target.repeats.forget(value)
        return
    node, segment = target.writable(path)
    node[segment if isinstance(node, dict) else _index(segment, len(node))] = value


def _do_move(target: _Target, operation: Operation) -> None:
    source = _member(operation, "from")
    try:
        value = _remove(target, source)
    except MissingPath:
        raise PatchFailed(_MISSING_FROM.format("move", source)) from None
    _insert(target, _member(operation, "path"), value)


def _do_copy(target: _Target, operation: Operation) -> None:
    source, path = _member(operation, "from"), _member(operation, "path")
    try:
        target.read(source)
    except MissingPath:
        raise PatchFailed(_MISSING_FROM.format("copy", source)) from None
    target.writable(path)
    value = target.read(source)  # read again, because containers on the path may now be copies
    target.copied_bytes += len(orjson.dumps(value, default=float))
    if target.copied_bytes > BODY_BYTES:
        raise PatchFailed("the accumulated size of copies exceeds the limit")
    if target.repeats:
        copied = target.repeats.copy_of(value)
    else:
        copied = with_sorted_keys(value, target.touched)
    _insert(target, path, copied)


def _do_test(target: _Target, operation: Operation) -> None:
    path = _member(operation, "path")
    current = target.root if path == "" else target.read(path)
    if not equal(current, operation.get("value")):
        raise PatchFailed(f"testing value {path} failed: test failed")
    target.read_all(current)
    if target.repeats:
        target.repeats.forget_all(current)


_OPERATIONS: dict[str, Callable[[_Target, Operation], None]] = {
    "add": _do_add,
    "remove": _do_remove,
    "replace": _do_replace,
    "move": _do_move,
    "copy": _do_copy,
    "test": _do_test,
}
