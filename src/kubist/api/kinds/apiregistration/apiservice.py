"""APIService: the server of a group-version. Without spec.service, this server serves it, so it is always Available."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import ClassVar

from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy, Subresource, Update
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import fields, names, objectmeta
from kubist.model.meta.object import Object

_STATUSES = ("True", "False", "Unknown")


class APIServiceStatus(Update):
    reset_fields = ("metadata", "spec")
    restored_fields = (
        "spec",
        "metadata.annotations",
        "metadata.finalizers",
        "metadata.labels",
        "metadata.ownerReferences",
    )

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        errors: Errors = []
        for index, condition in enumerate((new.get("status") or {}).get("conditions") or ()):
            if condition.get("status") not in _STATUSES:
                path = f"status.conditions[{index}].status"
                errors.append(fields.not_supported(path, condition.get("status", ""), _STATUSES))
        return errors


class APIServiceStrategy(Strategy):
    unconditional_update = False
    lenient_metadata = True
    qualified_finalizers = False
    reset_fields = ("status",)
    first_status: ClassVar = {}
    subresources: Mapping[str, Subresource] = {"status": APIServiceStatus()}

    def default(self, obj: Object) -> None:
        service = (obj.get("spec") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        if old is None and (new.get("spec") or {}).get("service") is None:
            available = {
                "type": "Available",
                "status": "True",
                "lastTransitionTime": ctx.now,
                "reason": "Local",
                "message": "Local APIServices are always available",
            }
            new["status"]["conditions"] = [available]

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        return _validate_metadata(new) + _validate_spec(new.get("spec") or {})


def _validate_metadata(obj: Object) -> Errors:
    """Validates metadata. The name must be `<version>.<group>`."""
    spec = obj.get("spec") or {}
    expected = f"{spec.get('version', '')}.{spec.get('group', '')}"

    def validate_name(name: str, _prefix: bool) -> list[str]:
        why = f'must be `spec.version+"."+spec.group`: {quoted(expected)}'
        return names.path_segment(name) or ([] if name == expected else [why])

    return objectmeta.validate_create(
        obj["metadata"], namespaced=False, validate_name=validate_name, qualified_finalizers=False
    )


def _validate_spec(spec: Object) -> Errors:
    errors = []
    group = spec.get("group", "")
    version = spec.get("version", "")
    if not group and version != "v1":
        why = "only v1 may have an empty group and it better be legacy kube"
        errors.append(fields.required("spec.group", why))
    if group:
        errors += [fields.invalid("spec.group", group, message) for message in names.dns_subdomain(group)]
    errors += [fields.invalid("spec.version", version, message) for message in names.dns_1035_label(version)]
    for name, limit in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
        priority = spec.get(name, 0)
        if not 0 < priority <= limit:
            errors.append(fields.invalid(f"spec.{name}", priority, f"must be positive and less than {limit}"))
    insecure = spec.get("insecureSkipTLSVerify", False)
    bundle = spec.get("caBundle")
    service = spec.get("service")
    if service is None:
        if bundle:
            why = "local APIServices may not have a caBundle"
            errors.append(fields.invalid("spec.caBundle", f"{len(base64.b64decode(bundle))} bytes", why))
        if insecure:
            why = "local APIServices may not have insecureSkipTLSVerify"
            errors.append(fields.invalid("spec.insecureSkipTLSVerify", insecure, why))
        return errors
    errors += [
        fields.required(f"spec.service.{name}") for name in ("namespace", "name") if not service.get(name)
    ]
    port = service.get("port", 0)
    errors += [
        fields.invalid("spec.service.port", port, f"port is not valid: {message}")
        for message in names.port_number(port)
    ]
    if insecure and bundle:
        why = "may not be true if caBundle is present"
        errors.append(fields.invalid("spec.insecureSkipTLSVerify", insecure, why))
    return errors


strategy = APIServiceStrategy()
