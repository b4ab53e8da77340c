"""Client-side apply: objects with the annotation kubectl.kubernetes.io/last-applied-configuration.

When the field manager `kubectl` first applies on the server, it owns the fields that the annotation covers.
"""

from __future__ import annotations

from typing import Any

import orjson

from kubist.model.patch.apply.compare import compare
from kubist.model.patch.apply.fields import claimed
from kubist.model.patch.apply.sets import LEAF, Set, difference
from kubist.model.patch.apply.typed import BadValue, Type
from kubist.model.patch.apply.validate import problems

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
MANAGER = "kubectl"

MAX_ANNOTATIONS_BYTES = 256 * 1024


def covered(kind: Type, live: dict[str, Any], api_version: str) -> Set:
    """Fields that the annotation of `live` covers: in the annotation, and unchanged since."""
    text = _annotations(live).get(ANNOTATION)
    if not text:
        return LEAF
    try:
        last = orjson.loads(text)
    except orjson.JSONDecodeError:
        return LEAF
    if not isinstance(last, dict) or last.get("apiVersion") != api_version:
        return LEAF
    if problems(kind, last) or problems(kind, live):
        return LEAF
    try:
        comparison = compare(kind, last, live)
    except BadValue:
        return LEAF
    fields = claimed(kind, last)
    for changed in (comparison.modified, comparison.added, comparison.removed):
        fields = difference(fields, changed)
    return fields


def renew(obj: dict[str, Any], applied: dict[str, Any]) -> dict[str, Any]:
    """`obj` with its last-applied annotation, if present, set to the configuration applied now."""
    annotations = _annotations(obj)
    if not annotations.get(ANNOTATION):
        return obj
    last = applied
    if said := _annotations(applied):
        said = {key: value for key, value in said.items() if key != ANNOTATION}
        last = {**applied, "metadata": {**applied["metadata"], "annotations": said}}
    annotations = {**annotations, ANNOTATION: _text(last)}
    if sum(len(k.encode()) + len(str(v).encode()) for k, v in annotations.items()) > MAX_ANNOTATIONS_BYTES:
        del annotations[ANNOTATION]
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _text(last: dict[str, Any]) -> str:
    text = orjson.dumps(last, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _annotations(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}
