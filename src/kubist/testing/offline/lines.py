"""Lines of the fields of a YAML or JSON document."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import yaml
from yaml._yaml import CParser
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

Path = tuple[str | int, ...]
_PART = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
MOST_FIELDS = 200_000
"""Maximum number of fields of a document whose lines are known. A finding in a later field gets the line of an
enclosing field."""
_DEEPEST = 64
"""Maximum depth of the fields whose lines are known."""


def has_more(text: bytes) -> bool:
    """Whether there is text after the first document, which the server's parser would not read."""
    parser = CParser(text)
    try:
        while type(parser.get_event()) is not DocumentEndEvent:
            pass
        return type(parser.get_event()) is not StreamEndEvent
    except yaml.YAMLError:
        return True


class Lines:
    """Line of every field of a document, read from the parser's events, so neither depth nor aliases cost memory."""

    def __init__(self, text: bytes, first: int) -> None:
        self._first = first
        self._lines: dict[Path, int] = {}
        with contextlib.suppress(yaml.YAMLError, UnicodeError):  # the fields before an error have lines
            self._walk(CParser(text))

    def of(self, path: Path) -> int:
        """Line of a field, or of the nearest enclosing field."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines[path] if path else self._lines.get((), self._first)

    def of_field(self, prefix: Path, field: str) -> int:
        """Line of a field in the notation of Kubernetes' errors: `spec.containers[0].image`."""
        path = prefix
        parts = [(index, name) for index, name in _PART.findall(field)]
        for at, (index, name) in enumerate(parts):
            # A key may contain dots: the rest of the text may be one key.
            rest = ".".join(name or index for index, name in parts[at:])
            candidates = [(*path, int(index))] if index.isdecimal() and len(index) < 10 else []
            candidates += [(*path, index.strip("\"'"))] if index else [(*path, name), (*path, rest)]
            known = next((each for each in candidates if each in self._lines), None)
            if known is None:
                break
            path = known
        return self.of(path)

    def _walk(self, parser: CParser) -> None:
        # For every open collection: its path, the next index (None for a mapping), and the key whose value comes next.
        stack: list[tuple[Path, int | None]] = []
        keys: list[str | None] = []
        while len(self._lines) < MOST_FIELDS:
            event: Any = parser.get_event()
            kind = type(event)
            if kind is StreamEndEvent:
                return
            if kind is MappingEndEvent or kind is SequenceEndEvent:
                stack.pop()
                keys.pop()
                if not stack:
                    return
                continue
            if kind not in (ScalarEvent, AliasEvent, MappingStartEvent, SequenceStartEvent):
                continue
            line = self._first + event.start_mark.line
            path: Path = ()
            if stack:
                where, index = stack[-1]
                if index is not None:
                    path = (*where, index)
                    stack[-1] = (where, index + 1)
                elif keys[-1] is None and kind is ScalarEvent:
                    keys[-1] = event.value
                    self._lines.setdefault((*where, event.value), line)
                    continue
                elif keys[-1] is not None:
                    path, keys[-1] = (*where, keys[-1]), None
            if len(path) <= _DEEPEST:
                self._lines.setdefault(path, line)
            if kind is MappingStartEvent or kind is SequenceStartEvent:
                stack.append((path[: _DEEPEST + 1], 0 if kind is SequenceStartEvent else None))
                keys.append(None)
