"""Reads manifests: files, directories, standard input, text or objects, with the line of every document."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import Any

from kubist.base.jsontext.errors import DecodeError
from kubist.model.codec import yaml
from kubist.model.meta.object import Object
from kubist.testing.offline.lines import Lines, has_more

Source = str | Path | Object
SUFFIXES = (".yaml", ".yml", ".json")
STDIN = "-"
FILE_LIMIT = 256 << 20
"""Maximum size of a file in bytes."""
_MARKER = re.compile(rb"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)", re.MULTILINE)
_COMMENT = rb"[ \t\r]*(?:#[^\n]*)?"
_WITHOUT_CONTENT = re.compile(rb"(?:%b\n|(?:---|\.\.\.)%b(?:\n|\Z))*%b\Z" % (_COMMENT, _COMMENT, _COMMENT))
_LEADING = re.compile(rb"(?:%b\n|(?:---|\.\.\.)%b\n|\.\.\.)*" % (_COMMENT, _COMMENT))
"""Lines before the content of a document, and the end marker of the document before."""
_DIRECTIVES = re.compile(rb"(?:%b\n|%%[^\n]*\n)*\Z" % _COMMENT)


@dataclass(frozen=True)
class Problem:
    """Input that is not a manifest. `is_unreadable`: the file itself cannot be read, so the run cannot be complete."""

    file: str
    line: int
    reason: str
    message: str
    is_unreadable: bool = False


@dataclass
class Document:
    """One document of a file."""

    file: str
    line: int
    text: bytes
    value: Any
    complaints: list[str]
    """Duplicate keys, as the YAML parser reports them."""

    @cached_property
    def lines(self) -> Lines:
        """Lines of the fields. They are computed only for documents with findings."""
        return Lines(self.text, self.line)


@dataclass
class Manifest:
    """One object of the input."""

    document: Document
    value: Object
    prefix: tuple[str | int, ...] = ()
    """Path of the object in its document: `("items", 0)` in a List."""
    index: int = 0
    """Position in the input."""
    api_version: str = field(init=False)
    kind: str = field(init=False)
    name: str = field(init=False)
    namespace: str = field(init=False)

    def __post_init__(self) -> None:
        metadata = self.metadata
        self.api_version = _text(self.value.get("apiVersion"))
        self.kind = _text(self.value.get("kind"))
        self.name = _text(metadata.get("name"))
        self.namespace = _text(metadata.get("namespace"))

    @property
    def file(self) -> str:
        return self.document.file

    @property
    def line(self) -> int:
        return self.document.lines.of(self.prefix) if self.prefix else self.document.line

    def line_of(self, path: str) -> int:
        """Line of a field, or of the nearest enclosing field."""
        if self.kind == "CustomResourceDefinition":  # the server's name of the only schema
            path = path.replace("spec.validation.", "spec.versions[0].schema.", 1)
        return self.document.lines.of_field(self.prefix, path)

    @property
    def metadata(self) -> Object:
        metadata = self.value.get("metadata")
        return metadata if isinstance(metadata, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


class Reader:
    """Collects the manifests and the problems of all sources. A file that is named twice is read once."""

    def __init__(self, exclude: Sequence[str] = ()) -> None:
        self._exclude = exclude
        self.manifests: list[Manifest] = []
        self.problems: list[Problem] = []
        self.files: dict[str, None] = {}
        self._read: set[str] = set()

    def read(self, sources: Iterable[Source]) -> list[Manifest]:
        """Manifests of the sources. They are also added to `manifests`."""
        before = len(self.manifests)
        for source in sources:
            if isinstance(source, dict):
                text = json.dumps(source, default=str).encode()
                self._expand(Document("<object>", 1, text, source, []))
            elif isinstance(source, str) and ("\n" in source or source.lstrip().startswith("{")):
                self._documents("<text>", source.encode("utf-8", "surrogatepass"))
            elif source == STDIN:
                self._stream()
            else:
                self._path(Path(source))
        return self.manifests[before:]

    def _stream(self) -> None:
        self.files.setdefault("<stdin>")
        self._documents("<stdin>", sys.stdin.buffer.read(FILE_LIMIT + 1))

    def _path(self, path: Path) -> None:
        try:
            if path.is_dir():
                for file in _below(path):
                    self._file(file)
            else:
                self._file(path)
        except (OSError, ValueError) as error:
            self._unreadable(str(path), error)

    def _file(self, path: Path) -> None:
        name = os.path.normpath(path)
        real = os.path.realpath(path)
        if real in self._read or any(
            fnmatch(name, each) or fnmatch(path.name, each) for each in self._exclude
        ):
            return
        self._read.add(real)
        self.files.setdefault(name)
        try:
            if not path.is_file() and path.exists():
                raise OSError(0, "it is not a regular file")
            with path.open("rb") as file:
                body = file.read(FILE_LIMIT + 1)
        except (OSError, ValueError) as error:
            self._unreadable(name, error)
            return
        self._documents(name, body)

    def _unreadable(self, file: str, error: Exception) -> None:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        self.problems.append(Problem(file, 1, "Unreadable", f"cannot read the file: {why}", True))

    def _documents(self, file: str, body: bytes) -> None:
        if len(body) > FILE_LIMIT:
            why = f"cannot read the file: it has more than {FILE_LIMIT >> 20} MiB; split it"
            self.problems.append(Problem(file, 1, "Unreadable", why, True))
            return
        if body.startswith((b"\xff\xfe", b"\xfe\xff")):
            body = body.decode("utf-16", "replace").encode()
        body = body.removeprefix(b"\xef\xbb\xbf")
        try:
            body.decode()
        except UnicodeDecodeError as error:
            why = f"cannot read the file: it is not UTF-8 text ({error.reason} at byte {error.start})"
            self.problems.append(Problem(file, 1, "Unreadable", why, True))
            return
        for line, text in split(body):
            try:
                parsed = yaml.parse(text)
            except DecodeError as error:
                self.problems.append(_malformed(file, line, text, error))
                continue
            if text.lstrip()[:1] in (b"{", b"[") and has_more(text):
                why = "not a YAML document: there is text after the end of the object; separate documents by ---"
                self.problems.append(Problem(file, line, "Malformed", why))
            elif parsed.value is not None:
                self._expand(Document(file, line, text, parsed.value, parsed.complaints))

    def _expand(self, document: Document) -> None:
        """Adds the object of a document, or the items of a List."""
        value = document.value
        if not isinstance(value, dict):
            why = f"not a Kubernetes object: the document is {_article(value)}, not a mapping with apiVersion and kind"
            self.problems.append(Problem(document.file, document.line, "NotAnObject", why))
            return
        kind, items = value.get("kind"), value.get("items")
        if not isinstance(kind, str) or not kind.endswith("List") or not isinstance(items, list):
            self._add(Manifest(document, value))
            return
        for complaint in document.complaints:
            at = re.match(r"line (\d+):", complaint)
            line = document.line + (int(at[1]) if at else 1) - 1
            self.problems.append(Problem(document.file, line, "DuplicateField", complaint))
        for number, item in enumerate(items):
            if not isinstance(item, dict):
                line = document.lines.of(("items", number))
                why = f"not a Kubernetes object: items[{number}] of the {kind} is {_article(item)}"
                self.problems.append(Problem(document.file, line, "NotAnObject", why))
                continue
            if kind != "List":  # the items of a typed list may omit their type
                item = {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix("List"), **item}
            self._add(Manifest(document, item, ("items", number)))

    def _add(self, manifest: Manifest) -> None:
        manifest.index = len(self.manifests)
        self.manifests.append(manifest)


def _malformed(file: str, line: int, text: bytes, error: DecodeError) -> Problem:
    """Problem of a document that cannot be parsed. It is parsed again below as many empty lines as precede it in its
    file, so that the message has the right line."""
    try:
        yaml.parse(b"\n" * (line - 1) + text)
    except DecodeError as shifted:
        error = shifted
    at = re.match(r"yaml: line (\d+):", str(error))
    return Problem(file, max(int(at[1]) if at else line, line), "Malformed", f"not a YAML document: {error}")


def _article(value: Any) -> str:
    names = {list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")


def _below(directory: Path) -> Iterator[Path]:
    """Manifest files of a directory and its subdirectories, without hidden ones, in the order of their names."""

    def fail(error: OSError) -> None:
        raise error

    for where, directories, files in os.walk(directory, onerror=fail):
        directories[:] = sorted(name for name in directories if not name.startswith("."))
        for name in sorted(files):
            if name.endswith(SUFFIXES) and not name.startswith("."):
                yield Path(where, name)


def split(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Documents of a file that have content, each with its first line. A marker at the start of a line ends the
    document before it, even in scalars, as the YAML specification requires."""
    if body.lstrip()[:1] == b"{" and (parts := _json_texts(body)) is not None:
        yield from parts
        return
    starts = [0, *(match.start() for match in _MARKER.finditer(body) if match.start())]
    pending = b""
    line = pending_line = 1
    for start, end in zip(starts, [*starts[1:], len(body)], strict=True):
        text = body[start:end]
        count = text.count(b"\n")
        if pending:
            text, first = pending + text, pending_line
        else:
            first = line
        pending = b""
        if b"%" in text and _DIRECTIVES.match(text):
            pending, pending_line = text, first
        elif not _WITHOUT_CONTENT.match(text):
            match = _LEADING.match(text) if not text.lstrip().startswith(b"%") else None
            skipped = match.end() if match else 0
            yield first + text.count(b"\n", 0, skipped), text[skipped:]
        line += count


def _json_texts(body: bytes) -> list[tuple[int, bytes]] | None:
    """Concatenated JSON objects, each with its first line. None if the text is not JSON."""
    texts = []
    line, at, decoder = 1, 0, json.JSONDecoder()
    try:
        text = body.decode()
        while (start := _next_word(text, at)) < len(text):
            line += text.count("\n", at, start)
            _, at = decoder.raw_decode(text, start)
            texts.append((line, text[start:at].encode()))
            line += text.count("\n", start, at)
    except (ValueError, RecursionError):
        return None
    return texts


def _next_word(text: str, at: int) -> int:
    """First position from `at` on that is not whitespace."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at
