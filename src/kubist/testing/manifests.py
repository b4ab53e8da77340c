"""Reads and checks manifests of tests: files, directories, text or objects."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kubist.api.resources.resource import Resource, Resources
from kubist.api.resources.suggestions import suggest_kind, suggest_version
from kubist.model.meta.object import Object
from kubist.testing.offline.manifests import SUFFIXES, Manifest, Problem, Reader
from kubist.testing.offline.order import CRDS, stage

__tracebackhide__ = True

Source = str | Path | Object
"""File or directory, text of manifests, or object."""
SHOWN = 100
"""Maximum number of characters of a manifest in an error message."""
PROBLEMS = 10
"""Maximum number of problems in one error."""


def read(sources: Iterable[Source]) -> list[Manifest]:
    """Manifests in the order of the sources. A source without an object, or with a malformed one, is an error."""
    return [manifest for source in sources for manifest in _read_source(source)]


def documents(sources: Iterable[Source]) -> list[Object]:
    """Objects in the order in which they can be created."""
    return [manifest.value for manifest in sorted(read(sources), key=comes_later)]


def read_one(source: Source) -> Manifest:
    manifests = read([source])
    if len(manifests) != 1:
        raise ValueError(f"the manifest has {len(manifests)} objects instead of one; use load()")
    return manifests[0]


def comes_later(manifest: Manifest) -> bool:
    """Whether the manifest is applied after Namespaces and CRDs."""
    return stage(manifest, set()) > CRDS


def resource_of(manifest: Manifest, resources: Resources, *, is_named: bool = True) -> Resource:
    """Resource of a manifest. Raises if kind, apiVersion or the name is missing, or if the kind is not served."""
    where, kind = place(manifest), manifest.kind
    if not kind:
        raise ValueError(f"{where}a manifest has no kind: {_format_document(manifest.value)}")
    if is_named and not manifest.name:
        raise ValueError(f"{where}{kind} has no metadata.name, which applying a manifest needs")
    version = manifest.api_version
    if not version:
        name = f' "{manifest.name}"' if manifest.name else ""
        raise ValueError(f"{where}{kind}{name} has no apiVersion{suggest_version(kind, resources)}")
    for resource in resources:
        if resource.api_version == version and resource.kind == kind:
            return resource
    raise LookupError(f"{where}{version} {kind} is not served{suggest_kind(version, kind, resources)}")


def place(manifest: Manifest) -> str:
    """File and line of a manifest, as the start of a message; empty for text and objects of the test."""
    return "" if manifest.file.startswith("<") else f"{manifest.file}:{manifest.line}: "


def _read_source(source: Source) -> list[Manifest]:
    if isinstance(source, dict):
        return Reader().read([source])
    is_text = isinstance(source, str) and ("\n" in source or source.lstrip().startswith("{"))
    if isinstance(source, str) and not source.strip():
        raise ValueError("the manifest is empty text")
    if not is_text:
        source = Path(source)
        if not source.exists():
            hint = f" in {Path.cwd()}" if not source.is_absolute() else ""
            raise FileNotFoundError(f'there is no file or directory "{source}"{hint}')
    reader = Reader()
    manifests = reader.read([source])
    if reader.problems:
        raise ValueError("\n".join(map(_described, reader.problems[:PROBLEMS])))
    if not manifests:
        raise ValueError(_nothing_in(source, list(reader.files)))
    return manifests


def _described(problem: Problem) -> str:
    where = f"manifest, line {problem.line}" if problem.file == "<text>" else f"{problem.file}:{problem.line}"
    return f"{where}: {' '.join(problem.message.split())}"


def _nothing_in(source: str | Path, files: list[str]) -> str:
    if isinstance(source, str):
        return f"the manifest has no object: {_format_document(source)}"
    if not source.is_dir():
        return f"the file {source} has no object"
    if not files:
        return f"the directory {source} has no manifests: no file below it ends with {', '.join(SUFFIXES)}"
    return f"the directory {source} has no object in {', '.join(files[:PROBLEMS])}"


def _format_document(document: Any) -> str:
    text = json.dumps(document, separators=(",", ":"), default=str)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
