"""Parses and checks manifests of tests: files, directories, text or objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from kubist.meta.object import Object
from kubist.resources.resource import Resource, Resources
from kubist.resources.suggestions import suggest_kind, suggest_version

__tracebackhide__ = True

SHOWN = 100
"""Maximum number of characters of a manifest in an error message."""


def documents(manifests: Iterable[str | Path | Object]) -> Iterable[Object]:
    """Objects in manifests. Lists are expanded to their items."""
    for manifest in manifests:
        found = [manifest] if isinstance(manifest, dict) else _parsed(manifest)
        for document in found:
            if not document:
                continue
            if not isinstance(document, dict):
                raise ValueError(f"a manifest is not an object: {_shown(document)}")
            if str(document.get("kind", "")).endswith("List") and "items" in document:
                yield from document["items"]
            else:
                yield document


def resource_of(obj: Object, resources: Resources) -> Resource:
    """Resource of a manifest. Raises if kind, name or apiVersion is missing or not served."""
    kind, metadata = obj.get("kind"), obj.get("metadata") or {}
    if not kind:
        raise ValueError(f"a manifest has no kind: {_shown(obj)}")
    if not (name := metadata.get("name")):
        raise ValueError(f"{kind} has no metadata.name, which applying a manifest needs")
    if not (version := obj.get("apiVersion")):
        raise ValueError(f'{kind} "{name}" has no apiVersion{suggest_version(kind, resources)}')
    for resource in resources:
        if resource.api_version == version and resource.kind == kind:
            return resource
    raise LookupError(f"{version} {kind} is not served{suggest_kind(version, kind, resources)}")


def _parsed(manifest: str | Path) -> Iterator[Any]:
    for text in _texts(manifest):
        try:
            yield from yaml.safe_load_all(text)
        except yaml.YAMLError as error:
            raise ValueError(f"a manifest is not YAML: {' '.join(str(error).split())}") from None


def _texts(manifest: str | Path) -> list[str]:
    if isinstance(manifest, str) and ("\n" in manifest or manifest.lstrip().startswith("{")):
        return [manifest]
    path = Path(manifest)
    if path.is_dir():
        return [
            file.read_text() for file in sorted(path.iterdir()) if file.suffix in (".yaml", ".yml", ".json")
        ]
    return [path.read_text()]


def _shown(document: Any) -> str:
    text = json.dumps(document, separators=(",", ":"), default=str)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
