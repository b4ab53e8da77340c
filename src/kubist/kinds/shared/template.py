"""Metadata of what is yet to be made from a template: it may be labelled and annotated, and nothing else."""

from __future__ import annotations

from typing import Any

from kubist.meta import objectmeta
from kubist.meta.fields import FieldError, forbidden

_SETTABLE = ("annotations", "labels")
_CALLED = {"uid": "uID"}


def validate_template_metadata(metadata: dict[str, Any], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if annotations := metadata.get("annotations"):
        errors += objectmeta.validate_annotations(annotations, f"{path}.annotations")
    if labels := metadata.get("labels"):
        errors += objectmeta.validate_labels(labels, f"{path}.labels")
    for name, value in metadata.items():
        numbered = name == "deletionGracePeriodSeconds" and value is not None
        given = value or numbered or isinstance(value, dict | list)
        if given and name not in _SETTABLE:
            errors.append(forbidden(f"{path}.{_CALLED.get(name, name)}", "cannot be set"))
    return errors
