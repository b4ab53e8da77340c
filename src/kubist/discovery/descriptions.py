"""Descriptions of fields, where an installed package has them: `pip install kubist[docs]`.

They are read out of the docstrings of `lightkube-models`, a module of dataclasses for each group-version.
"""

from __future__ import annotations

import importlib
import re
from functools import cache
from typing import Any

_TYPE = re.compile(r"io\.k8s\.(?:api|[a-z-]+\.pkg(?:\.apis?)?)\.([a-z]+(?:\.[a-z0-9]+)?)\.(\w+)")
_FIELD = re.compile(r"^\s*\* \*\*(\w+)\*\* ``[^`]*`` - ", re.MULTILINE)


def described(name: str, definition: dict[str, Any]) -> dict[str, Any]:
    """A type's definition with the descriptions that there are of it and of its fields."""
    text, fields = _of(name)
    if not text and not fields:
        return definition
    shown = {"description": text, **definition} if text else dict(definition)
    if "properties" in shown:
        shown["properties"] = {
            field: {"description": fields[field], **schema} if field in fields else schema
            for field, schema in shown["properties"].items()
        }
    return shown


def _of(name: str) -> tuple[str, dict[str, str]]:
    match = _TYPE.fullmatch(name)
    if match is None:
        return "", {}
    return _read(match[1].replace(".", "_"), match[2])


@cache
def _read(module: str, kind: str) -> tuple[str, dict[str, str]]:
    try:
        found = getattr(importlib.import_module(f"lightkube.models.{module}"), kind, None)
    except ImportError:
        return "", {}
    text = getattr(found, "__doc__", None) or ""
    head, _, rest = text.partition("**parameters**")
    marks = list(_FIELD.finditer(rest))
    ends = [mark.start() for mark in marks[1:]] + [len(rest)]
    fields = {mark[1]: _joined(rest[mark.end() : end]) for mark, end in zip(marks, ends, strict=False)}
    return _joined(head), {field: text for field, text in fields.items() if text}


def _joined(text: str) -> str:
    """Lines that belong together in one; empty lines part paragraphs."""
    paragraphs = re.split(r"\n\s*\n", text.strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
