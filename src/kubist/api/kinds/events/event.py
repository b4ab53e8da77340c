"""Event of events.k8s.io: core events with other field names and stricter rules.

Hooks get the stored core/v1 form; `convert` converts between the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kubist.api.kinds.core.event import EventStrategy, validate_event
from kubist.api.resources.strategy import Errors
from kubist.model.meta import names, objectmeta
from kubist.model.meta.fields import invalid, required
from kubist.model.meta.object import Object
from kubist.model.schema.internals import internal_form

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

_RENAMED = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
"""events.k8s.io/v1 field → core/v1 field. Other fields have the same name."""

_BACK = {core: new for new, core in _RENAMED.items()}
_ALWAYS_IN_CORE: dict[str, Any] = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
_ALWAYS_HERE: dict[str, Any] = {
    "regarding": {},
    "deprecatedSource": {},
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
    "eventTime": None,
}
_TYPES = {
    "involvedObject": "core.ObjectReference",
    "related": "*core.ObjectReference",
    "source": "core.EventSource",
    "count": "number",
    **dict.fromkeys(
        ("reason", "message", "type", "action", "reportingComponent", "reportingInstance"), "string"
    ),
}
"""Internal Go types of fields that are not times, for error messages."""
_IMMUTABLE = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "reason",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
)
"""Immutable fields by their stored names, in the order of the reported errors."""


class NewEventStrategy(EventStrategy):
    field_labels: Mapping[str, str] = {
        **{
            f"regarding.{field}": f"involvedObject.{field}"
            for field in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        },
        "reason": "reason",
        "reportingController": "reportingComponent",
        "type": "type",
    }
    stored_labels: Mapping[str, str] = field_labels

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        errors = validate_event(new, "reportingController")
        return errors + (_validate_new(new) if old is None else _validate_change(new, old))

    def convert(self, obj: Object, api_version: str) -> Object:
        if obj["apiVersion"] == api_version:
            return obj
        to_core = api_version == "v1"
        names_of = _RENAMED if to_core else _BACK
        converted = {names_of.get(field, field): value for field, value in obj.items()}
        converted["apiVersion"] = api_version
        for field, value in (_ALWAYS_IN_CORE if to_core else _ALWAYS_HERE).items():
            if field not in converted:
                converted[field] = dict(value) if isinstance(value, dict) else value
        if not to_core:
            for field in ("reportingController", "reportingInstance"):
                if not converted.get(field):
                    converted.pop(field, None)
        return converted


def _validate_series(event: Object) -> Errors:
    series = event.get("series")
    if series is None:
        return []
    errors: Errors = []
    if series.get("count", 0) < 2:
        errors.append(invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        errors.append(required("series.lastObservedTime"))
    return errors


def _validate_new(event: Object) -> Errors:
    errors = objectmeta.validate_create(event["metadata"], namespaced=True, validate_name=names.dns_subdomain)
    errors += _validate_series(event)
    if not event.get("eventTime"):
        errors.append(required("eventTime"))
    kind = event.get("type", "")
    if kind not in ("Normal", "Warning"):
        errors.append(invalid("type", "", f"has invalid value: {kind}"))
    errors += [
        invalid(field, "", "needs to be unset")
        for field in ("firstTimestamp", "lastTimestamp", "count", "source")
        if event.get(field)
    ]
    return errors


def _validate_change(new: Object, old: Object) -> Errors:
    errors = objectmeta.validate_update(new["metadata"], old["metadata"])
    if new.get("series") != old.get("series"):
        errors += _validate_series(new)
    for field in _IMMUTABLE:
        if (new.get(field) or None) != (old.get(field) or None):
            field_name = "reportingController" if field == "reportingComponent" else field
            value = internal_form(_TYPES.get(field, "nullable"), new.get(field))
            errors.append(invalid(field_name, value, "field is immutable"))
    return errors


strategy = NewEventStrategy()
