"""Helpers for updates: immutable fields, and metadata that `/status` does not change."""

from __future__ import annotations

from typing import Any

from kubist.api.resources.strategy import Update
from kubist.model.meta.fields import FieldError, invalid
from kubist.model.schema.internals import internal_form

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
    """Rejects a change of the value. The message shows the value as Go's internal `type`."""
    return [] if new == old else [invalid(path, internal_form(type, new), "field is immutable")]


class StatusOnly(Update):
    """`/status` through which neither spec nor metadata changes."""

    reset_fields = ("metadata", "spec")
    restored_fields = ("spec", *STATUS_METADATA)
