"""DeviceClass: named selection of devices for claims, with their configuration."""

from __future__ import annotations

from kubist.api.kinds.resource.common import each, validate_configuration
from kubist.api.kinds.resource.expressions import validate_selector
from kubist.api.kinds.shared.resourcenames import is_extended
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import fields, names
from kubist.model.meta.object import Object


class DeviceClassStrategy(Strategy):
    returns_deleted = True
    generation_fields = ("spec",)
    metadata_rules = ("object", "update")

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        return [] if prefix else names.dns_subdomain(name, prefix)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        return _validate(new.get("spec") or {}, (old.get("spec") or {}) if old is not None else {})


def _validate(spec: Object, old: Object) -> Errors:
    kept = bool(old) and spec.get("config") == old.get("config")
    errors = each(spec.get("selectors"), 32, "spec.selectors", validate_selector)
    errors += each(
        spec.get("config"),
        32,
        "spec.config",
        lambda config, path: validate_configuration(config, path, stored=kept),
    )
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended(name):
        why = "must be a valid extended resource name"
        errors.append(fields.invalid("spec.extendedResourceName", name, why))
    return errors


strategy = DeviceClassStrategy()
