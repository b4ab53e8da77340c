"""Event: report about an object, deleted after `event_ttl`. Served in core/v1 and in events.k8s.io/v1.

Stored as core/v1. An event with eventTime is new-style, and events.k8s.io applies stricter rules to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kubist.api.resources.strategy import Errors, Strategy, text_at
from kubist.model.meta import names
from kubist.model.meta.fields import invalid, required
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

SHORT_LIMIT = 128
MESSAGE_LIMIT = 1024


class EventStrategy(Strategy):
    create_on_update = True
    cached = False
    default_propagation = "Unsupported"
    ttl_flag = "event_ttl"
    lenient_metadata = True
    metadata_rules = ()
    field_labels: Mapping[str, str] = {
        "involvedObject.kind": "involvedObject.kind",
        "involvedObject.namespace": "involvedObject.namespace",
        "involvedObject.name": "involvedObject.name",
        "involvedObject.uid": "involvedObject.uid",
        "involvedObject.apiVersion": "involvedObject.apiVersion",
        "involvedObject.resourceVersion": "involvedObject.resourceVersion",
        "involvedObject.fieldPath": "involvedObject.fieldPath",
        "reason": "reason",
        "reportingComponent": "reportingComponent",
        "source": "source.component",
        "type": "type",
    }

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        return validate_event(new, "reportingComponent")

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        found = super().selectable_fields(obj)
        found["source"] = text_at(obj, "source.component") or text_at(obj, "reportingComponent")
        return found


def validate_event(event: Object, controller_field: str) -> Errors:
    """Validates an event in either group. `controller_field` is the request's name for reportingComponent."""
    errors: Errors = []
    namespace = event["metadata"].get("namespace", "")
    involved = event["involvedObject"].get("namespace", "")
    elsewhere = invalid("involvedObject.namespace", involved, "does not match event.namespace")
    if not event.get("eventTime"):
        allowed = (involved,) if involved else ("", "default")
        if namespace not in allowed:
            errors.append(elsewhere)
    else:
        if not involved and namespace not in ("default", "kube-system"):
            errors.append(elsewhere)
        errors += _validate_new_style(event, controller_field)
    return errors + [invalid("namespace", namespace, message) for message in names.dns_subdomain(namespace)]


def _validate_new_style(event: Object, controller_field: str) -> Errors:
    controller = event.get("reportingComponent", "")
    errors: Errors = [] if controller else [required(controller_field)]
    errors += [invalid(controller_field, controller, message) for message in names.qualified_name(controller)]
    for field in ("reportingInstance", "action", "reason"):
        value = event.get(field, "")
        if not value:
            errors.append(required(field))
        if len(value.encode()) > SHORT_LIMIT:
            errors.append(invalid(field, "", f"can have at most {SHORT_LIMIT} characters"))
    if len(event.get("message", "").encode()) > MESSAGE_LIMIT:
        errors.append(invalid("message", "", f"can have at most {MESSAGE_LIMIT} characters"))
    return errors


strategy = EventStrategy()
