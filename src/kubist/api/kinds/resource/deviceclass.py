"""DeviceClass: named selection of devices for claims, with their configuration."""

from __future__ import annotations

from kubist.api.kinds.resource.common import CONFIGURATION, STORED_CONFIGURATION
from kubist.api.kinds.resource.expressions import validate_selector
from kubist.api.kinds.shared.resource_names import is_extended
from kubist.api.kinds.shared.rules import field, items, must, nullable, struct
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import names
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
    is_stored = bool(old) and spec.get("config") == old.get("config")
    rules = struct(
        items("selectors", validate_selector, most=32),
        items("config", STORED_CONFIGURATION if is_stored else CONFIGURATION, most=32),
        field("extendedResourceName", nullable, must(is_extended, "must be a valid extended resource name")),
    )
    return rules(spec, "spec")


strategy = DeviceClassStrategy()
