"""Descriptions of built-in types and fields, read from the source files of the `lightkube-models` package.

The package has one module per group-version with one dataclass per type. The docstring of a class describes
the type and its fields. The files are read as text when a document is generated, because importing them would
need lightkube itself and build thousands of dataclasses.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

_TYPE = re.compile(r"io\.k8s\.(?:api|[a-z-]+\.pkg(?:\.apis?)?)\.([a-z]+(?:\.[a-z0-9]+)?)\.(\w+)")
_CLASS = re.compile(r'^class (\w+)\(.*?\):\n\s+r?"""(.*?)"""', re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s*\* \*\*(\w+)\*\* ``[^`]*`` - ", re.MULTILINE)
_PACKAGE = "lightkube-models"


class Description(NamedTuple):
    """Text of a type and of its fields, by JSON name."""

    text: str
    fields: dict[str, str]


_NONE = Description("", {})


def described(name: str, definition: dict[str, Any]) -> dict[str, Any]:
    """Adds the descriptions of a type and its fields to its OpenAPI schema."""
    text, fields = _of_type(name)
    if not text and not fields:
        return definition
    result = {"description": text, **definition} if text else dict(definition)
    if "properties" in result:
        result["properties"] = {
            field: {"description": fields[field], **schema} if field in fields else schema
            for field, schema in result["properties"].items()
        }
    return result


def of_object_fields(kind: str = "ConfigMap") -> dict[str, str]:
    """Descriptions of apiVersion, kind and metadata, which are the same for every object, or for every list."""
    return _module("core_v1").get(kind, _NONE).fields


@cache
def version() -> str:
    """Version of the package with the texts; empty if it is not installed."""
    try:
        return importlib.metadata.version(_PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _of_type(name: str) -> Description:
    match = _TYPE.fullmatch(name)
    if match is None:
        return _NONE
    return _module(match[1].replace(".", "_")).get(match[2], _NONE)


@cache
def _module(name: str) -> dict[str, Description]:
    """All types of one module. The built-in catalog limits the number of modules."""
    for folder in _folders():
        path = folder / f"{name}.py"
        if path.is_file():
            return {kind: _parse(text) for kind, text in _CLASS.findall(path.read_text("utf-8"))}
    return {}


@cache
def _folders() -> tuple[Path, ...]:
    spec = importlib.util.find_spec("lightkube")
    locations = spec.submodule_search_locations if spec is not None else None
    return tuple(Path(location) / "models" for location in locations or ())


def _parse(docstring: str) -> Description:
    head, _, rest = docstring.partition("**parameters**")
    marks = list(_FIELD.finditer(rest))
    ends = [mark.start() for mark in marks[1:]] + [len(rest)]
    texts = {
        _json_name(mark[1]): _unwrap(rest[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)
    }
    return Description(_unwrap(head), {field: text for field, text in texts.items() if text})


def _json_name(attribute: str) -> str:
    """JSON name of a dataclass attribute. Python keywords have a trailing underscore there, and `$` is spelled `d_`."""
    if attribute in ("d_ref", "d_schema"):
        return "$" + attribute[2:]
    return attribute.removesuffix("_").replace("x_kubernetes_", "x-kubernetes-").replace("_", "-")


def _unwrap(text: str) -> str:
    """Joins the lines of each paragraph. Empty lines separate paragraphs."""
    paragraphs = re.split(r"\n\s*\n", text.strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
