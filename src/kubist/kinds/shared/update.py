"""What many kinds say about updates: fields that never change, metadata that `/status` leaves alone."""

from __future__ import annotations

from typing import Any

from kubist.meta.fields import FieldError, invalid
from kubist.resources.strategy import keep
from kubist.schema.internals import internal_form

Object = dict[str, Any]

STATUS_METADATA = (
    "metadata.annotations",
    "metadata.deletionGracePeriodSeconds",
    "metadata.deletionTimestamp",
    "metadata.finalizers",
    "metadata.generation",
    "metadata.labels",
    "metadata.ownerReferences",
)


def immutable(new: Any, old: Any, path: str, type: str = "nullable") -> list[FieldError]:
    """An error if the value changed. The message shows it as one of an internal type."""
    return [] if new == old else [invalid(path, internal_form(type, new), "field is immutable")]


def keep_metadata(new: Object, old: Object) -> None:
    """Undo a status writer's changes to metadata; managedFields are the system's and stay."""
    keep(new, old, *STATUS_METADATA)
