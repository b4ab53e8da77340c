"""A PodTemplateSpec: the metadata and spec of pods to come."""

from __future__ import annotations

from typing import Any

from kubist.meta import objectmeta
from kubist.meta.fields import FieldError

Object = dict[str, Any]


def validate_pod_template(template: Object, path: str, old: Object | None = None) -> list[FieldError]:
    """All that is wrong with a template. What `old`, the template that it replaces, already had wrong may
    stay where compatibility wants it."""
    meta = template.get("metadata") or {}
    errors = objectmeta.validate_labels(meta.get("labels") or {}, f"{path}.labels")
    errors += objectmeta.validate_annotations(meta.get("annotations") or {}, f"{path}.annotations")
    return errors


def template_warnings(template: Object, path: str, old: Object | None = None) -> list[str]:
    """What is better not done in a template, unless the `old` one already did it."""
    return []


def drop_disabled_template_fields(template: Object, old: Object | None = None) -> None:
    """Remove the fields of features that are off, unless the `old` template has them."""
