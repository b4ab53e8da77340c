"""Metadata of templates: only labels and annotations may be set."""

from __future__ import annotations

from typing import Any

from kubist.model.meta import objectmeta
from kubist.model.meta.fields import FieldError, forbidden

_NOT_SETTABLE = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
    "managedFields",
)
_CALLED = {"uid": "uID"}


def validate_template_metadata(metadata: dict[str, Any], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if annotations := metadata.get("annotations"):
        errors += objectmeta.validate_annotations(annotations, f"{path}.annotations")
    if labels := metadata.get("labels"):
        errors += objectmeta.validate_labels(labels, f"{path}.labels")
    for name in _NOT_SETTABLE:
        value = metadata.get(name)
        numbered = name == "deletionGracePeriodSeconds" and value is not None
        if value or numbered or isinstance(value, list):
            errors.append(forbidden(f"{path}.{_CALLED.get(name, name)}", "cannot be set"))
    return errors
