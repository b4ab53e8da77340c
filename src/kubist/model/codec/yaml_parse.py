"""Parser of YAML 1.1 bodies, which reads them through JSON values as the reference does.

The parser uses libyaml's events, so neither depth nor aliases can exhaust memory. `yaml_scalars.py` resolves
scalars.
"""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import orjson
import yaml
from yaml._yaml import CParser
from yaml.events import (
    AliasEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from kubist.base.jsontext.errors import DecodeError
from kubist.base.jsontext.json import MAX_DEPTH, check_depth, may_repeat
from kubist.base.jsontext.quoting import quoted
from kubist.model.codec.yaml import Document
from kubist.model.codec.yaml_scalars import Scalar, key_text, resolve
from kubist.model.meta.numerals import canonical, odd_number


def parse(body: bytes) -> Document:
    """See `yaml.parse`."""
    if body.lstrip()[:1] == b"{" and _reads_as_json(body):
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError:
            return _Builder().build(body)
        if not may_repeat(body, value):
            text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
            value = orjson.loads(text)
            return Document(canonical(value) if odd_number(text) else value, [])
    return _Builder().build(body)


def _reads_as_json(body: bytes) -> bool:
    """Whether a JSON text has the same value in YAML 1.1, which has different escapes, characters and line breaks."""
    return not (
        b"\x7f" in body
        or b"\\/" in body
        or (b"\\u" in body and _surrogate(body))
        or (b"\n" in body and _late_colon(body))
        or not (body.isascii() or _special(body) is None)
    )


_surrogate = re.compile(rb"\\u[dD][89a-fA-F]").search
_late_colon = re.compile(rb"\n\s*:").search
_special = re.compile(rb"\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]|\xef\xbf[\xbe\xbf]").search
"""Control characters, line breaks and noncharacters in UTF-8."""


class _Collection:
    """List or mapping under construction."""

    __slots__ = ("anchor", "count", "key", "keys", "line", "merging", "value")

    def __init__(self, value: Any, anchor: str | None, line: int) -> None:
        self.value = value
        self.anchor = anchor
        self.line = line
        self.count = 1
        self.key: Any = None
        self.merging = False
        self.keys: set[tuple[type, Any]] = set()


class _Builder:
    def __init__(self) -> None:
        self.complaints: list[str] = []
        self.stack: list[_Collection] = []
        self.anchors: dict[str, tuple[Any, int] | None] = {}
        """Value and size by anchor. None while the value is under construction."""
        self.slashes = ""
        """Text of the body, if it may contain `\\/`, an escape that JSON has and YAML 1.1 does not."""
        self.nodes = 0
        self.aliased = 0

    def build(self, body: bytes) -> Document:
        try:
            if b"\\/" in body:
                self.slashes = body.decode()
            value = self._document(CParser(body))
            if self.nodes > MAX_DEPTH:
                check_depth(value)
            return Document(value, self.complaints)
        except RecursionError:
            raise DecodeError("yaml: exceeded max depth") from None
        except yaml.MarkedYAMLError as error:
            raise DecodeError(f"yaml: {_where(error)}{error.problem}") from None
        except (yaml.YAMLError, UnicodeError) as error:
            reason = getattr(error, "reason", "invalid Unicode character")
            raise DecodeError(f"yaml: {reason}") from None

    def _document(self, parser: Any) -> Any:
        while True:
            event = parser.get_event()
            kind = type(event)
            if kind is StreamEndEvent:
                return None
            if kind is ScalarEvent:
                value, line = self._scalar(event), event.start_mark.line
                count = 1
            elif kind is AliasEvent:
                value, count = self._alias(event)
                line = event.start_mark.line
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                self._open(event, {} if kind is MappingStartEvent else [])
                continue
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                done = self.stack.pop()
                value, count, line = done.value, done.count, done.line
                if kind is MappingEndEvent:
                    value = dict(sorted(value.items()))
                if done.anchor:
                    self.anchors[done.anchor] = (value, count)
            else:
                continue
            if not self.stack:
                return _plain(value)
            self._add(self.stack[-1], value, count, line)

    def _open(self, event: Any, value: Any) -> None:
        self._count(1)
        if len(self.stack) >= MAX_DEPTH:
            raise DecodeError(f"yaml: exceeded max depth of {MAX_DEPTH}")
        if event.anchor:
            self.anchors[event.anchor] = None
        self.stack.append(_Collection(value, event.anchor, event.start_mark.line))

    def _count(self, nodes: int, aliased: bool = False) -> None:
        """Counts nodes, and rejects aliases that expand beyond the reference's limits."""
        self.nodes += nodes
        if aliased:
            self.aliased += nodes
        allowed = 0.99 - 0.89 * min(max(self.nodes - 400_000, 0) / 3_600_000, 1.0)
        if self.aliased > 100 and self.nodes > 1000 and self.aliased / self.nodes > allowed:
            raise DecodeError("yaml: document contains excessive aliasing")

    def _scalar(self, event: Any) -> Any:
        self._count(1)
        if self.slashes and event.style == '"':
            self._check_escapes(event)
        value = resolve(event.tag, event.value, event.implicit[0])
        if event.anchor:
            self.anchors[event.anchor] = (value, 1)
        return value

    def _check_escapes(self, event: Any) -> None:
        written = self.slashes[event.start_mark.index : event.end_mark.index]
        if match := re.match(r"(?:[^\\]|\\[^/])*\\/", written, re.DOTALL):
            line = event.start_mark.line + match.group().count("\n")
            raise DecodeError(f"yaml: {f'line {line + 1}: ' if line else ''}found unknown escape character")

    def _alias(self, event: Any) -> tuple[Any, int]:
        if event.anchor not in self.anchors:
            raise DecodeError(f"yaml: unknown anchor '{event.anchor}' referenced")
        known = self.anchors[event.anchor]
        if known is None:
            raise DecodeError(f"yaml: anchor '{event.anchor}' value contains itself")
        value, count = known
        self._count(count, aliased=True)
        return deepcopy(value), count

    def _add(self, parent: _Collection, value: Any, count: int, line: int) -> None:
        parent.count += count
        if isinstance(parent.value, list):
            parent.value.append(_plain(value))
        elif parent.merging:
            parent.merging = False
            for merged in reversed(value) if isinstance(value, list) else (value,):
                if not isinstance(merged, dict):
                    raise DecodeError("yaml: map merge requires map or sequence of maps as the value")
                for key, item in merged.items():
                    self._set(parent, key, item, line)
        elif parent.key is None:
            if isinstance(value, Scalar) and value.is_merge:
                parent.merging = True
            elif isinstance(value, dict | list):
                raise DecodeError(f"yaml: invalid map key: {_go_syntax(_plain(value))}")
            else:
                parent.key = (_plain(value),)
        else:
            (key,) = parent.key
            parent.key = None
            self._set(parent, key, _plain(value), line)

    def _set(self, parent: _Collection, key: Any, value: Any, line: int) -> None:
        text = key_text(key)
        if (type(key), key) in parent.keys:
            spelled = quoted(key) if isinstance(key, str) else text
            self.complaints.append(f"line {line + 1}: key {spelled} already set in map")
        parent.keys.add((type(key), key))
        parent.value[text] = value


def _go_syntax(value: Any) -> str:
    """Value in Go's %#v format."""
    match value:
        case None:
            return "interface {}(nil)"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
        case list():
            return f"[]interface {{}}{{{', '.join(_go_syntax(_plain(item)) for item in value)}}}"
        case dict():
            pairs = (f"{_go_syntax(key)}:{_go_syntax(_plain(item))}" for key, item in value.items())
            return f"map[interface {{}}]interface {{}}{{{', '.join(pairs)}}}"
    return str(value)


def _plain(value: Any) -> Any:
    return value.text if isinstance(value, Scalar) else value


def _where(error: yaml.MarkedYAMLError) -> str:
    line = 0
    if error.problem_mark is not None and error.problem_mark.line:
        line = error.problem_mark.line + isinstance(error, yaml.scanner.ScannerError)
    elif error.context_mark is not None:
        line = error.context_mark.line
    return f"line {line}: " if line else ""
