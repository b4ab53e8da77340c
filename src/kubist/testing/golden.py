"""Golden files: normalised requests that a test expects."""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kubist.model.codec import yaml
from kubist.model.meta.object import Object

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

UPDATE = "KUBIST_UPDATE_GOLDEN"
"""Environment variable that makes `match` write the files. `pytest --kubist-update-golden` sets it."""
MOST_LINES = 200
"""Maximum number of lines of a diff that are shown."""


def match(path: Path, lines: list[Object], *, responses: bool) -> None:
    """Compares requests with a golden file. Raises AssertionError with a diff."""
    text = normalise(lines, responses=responses)
    if os.environ.get(UPDATE):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return
    if not path.exists():
        raise AssertionError(
            f"the golden file {path} does not exist; `pytest --kubist-update-golden` creates it"
        )
    expected = path.read_text()
    if text == expected:
        return
    diff = list(
        difflib.unified_diff(expected.splitlines(), text.splitlines(), str(path), "recorded", lineterm="")
    )
    if len(diff) > MOST_LINES:
        diff = [*diff[:MOST_LINES], f"… and {len(diff) - MOST_LINES} more lines"]
    raise AssertionError(
        f"the requests differ from the golden file {path}; `pytest --kubist-update-golden` updates it\n"
        + "\n".join(diff)
    )


_UID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"
_TOKEN = r"eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+"
_ADDRESS = r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\w)"
_LOCAL_PORT = r"(?:(?<=127\.0\.0\.1:)|(?<=localhost:)|(?<=\[::1\]:))\d{2,5}\b"
_QUERY = r"(?:(?<=resourceVersion=)|(?<=continue=))[\w%.=-]+"
_VOLATILE = re.compile(
    f"(?P<token>{_TOKEN})|(?P<uid>{_UID})|(?P<time>{_TIME})|(?P<port>{_LOCAL_PORT})|(?P<ip>{_ADDRESS})"
    f"|(?P<version>{_QUERY})"
)
_WORD = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
STABLE = ("127.0.0.1", "0.0.0.0", "0", "")
"""Addresses and versions that are the same in every run."""
FIELDS = {
    "resourceVersion": "version",
    "nodePort": "port",
    "healthCheckNodePort": "port",
    "continue": "version",
}
"""Fields whose values are replaced, with the kind of their placeholder."""


class Normaliser:
    """Placeholders of one recording, numbered in the order of their first use."""

    def __init__(self, lines: Iterable[Object]) -> None:
        self._placeholders: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._prefixes: dict[str, str] = {}
        """generateName of each generated name."""
        for line in lines:
            for name in ("requestObject", "responseObject", "before", "after"):
                self._learn(line.get(name))

    def _learn(self, obj: Any) -> None:
        """Remembers the generated names of an object, or of the objects of a list."""
        if not isinstance(obj, dict):
            return
        for item in obj.get("items") or ():
            self._learn(item)
        metadata = obj.get("metadata")
        if isinstance(metadata, dict):
            prefix, name = metadata.get("generateName"), metadata.get("name")
            if isinstance(prefix, str) and isinstance(name, str) and prefix and name.startswith(prefix):
                self._prefixes[name] = prefix

    def value(self, value: Any, field: str = "") -> Any:
        """A value with placeholders."""
        if isinstance(value, dict):
            return {self.text(key): self.value(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item, field) for item in value]
        if field in FIELDS and isinstance(value, (str, int)) and str(value) not in STABLE:
            return self._placeholder(FIELDS[field], str(value))
        return self.text(value) if isinstance(value, str) else value

    def text(self, text: str) -> str:
        """A text with placeholders."""
        if ":" in text and _is_address(text):
            return self._placeholder("ip", text)
        text = _VOLATILE.sub(self._replaced, text)
        return _WORD.sub(self._named, text) if self._prefixes else text

    def _replaced(self, match: re.Match[str]) -> str:
        kind = str(match.lastgroup)
        value = match[0]
        if kind == "time":
            return "<time>"
        return value if value in STABLE else self._placeholder(kind, value)

    def _named(self, match: re.Match[str]) -> str:
        prefix = self._prefixes.get(match[0])
        return match[0] if prefix is None else prefix + self._placeholder("suffix", match[0])

    def _placeholder(self, kind: str, value: str) -> str:
        placeholder = self._placeholders.get((kind, value))
        if placeholder is None:
            number = self._counts[kind] = self._counts.get(kind, 0) + 1
            placeholder = self._placeholders[(kind, value)] = f"<{kind}-{number}>"
        return placeholder


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return text != "::1"


def normalise(lines: list[Object], *, responses: bool) -> str:
    """Text of the parts of recorded requests that are the same in every run."""
    normaliser = Normaliser(lines)
    return "\n".join(_format_line(normaliser, line, responses) for line in lines)


def _format_line(normaliser: Normaliser, line: Object, responses: bool) -> str:
    """A request: one line, then its objects as YAML."""
    target = f"{line['path']}?{line['query']}" if line.get("query") else line["path"]
    result = f"{line.get('status', 'connection closed')} {line.get('reason', '')}".strip()
    text = normaliser.text(f"{line['method']} {target} -> {result}, by {line['user'] or 'nobody'}") + "\n"
    if "patchType" in line:
        text += f"  {line['patchType']}\n"
    for name in ("patch", "requestObject", "deleted", *(("responseObject",) if responses else ())):
        if name in line:
            body = yaml.dumps(normaliser.value(line[name])).decode()
            text += f"  {name}:\n" + textwrap.indent(body, "    ")
    return text
