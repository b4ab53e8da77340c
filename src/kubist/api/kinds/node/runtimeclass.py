"""RuntimeClass: a container runtime configuration for pods, with its overhead and scheduling constraints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kubist.api.kinds.core.podspec.options import Options
from kubist.api.kinds.core.podspec.resources import NO_CLAIMS, validate_requirements
from kubist.api.kinds.core.podspec.scheduling import validate_tolerations
from kubist.api.kinds.shared.node_labels import DEPRECATED
from kubist.api.kinds.shared.update import immutable
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import names, objectmeta
from kubist.model.meta.fields import duplicate, invalid, required
from kubist.model.meta.labels import validate_labels
from kubist.model.meta.object import Object
from kubist.model.schema.internals import internal_form

if TYPE_CHECKING:
    from kubist.api.resources.context import Context


class RuntimeClassStrategy(Strategy):
    create_on_update = True
    unconditional_update = False
    qualified_finalizers = False
    metadata_rules = ("object",)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        errors = _validate(new)
        if old is not None:
            errors += objectmeta.validate_update(new["metadata"], old["metadata"], qualified_finalizers=False)
            errors += immutable(new.get("handler", ""), old.get("handler", ""), "handler")
        return errors

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        return _warnings(new)


def _validate(obj: Object) -> Errors:
    handler = obj.get("handler")
    if handler:
        errors = [invalid("handler", handler, message) for message in names.dns_label(handler)]
    else:
        errors = [required("handler")]
    if "overhead" in obj:
        errors += validate_requirements(
            {"limits": obj["overhead"].get("podFixed")}, NO_CLAIMS, "overhead", Options()
        )
    scheduling = obj.get("scheduling")
    if scheduling is not None:
        errors += validate_labels(scheduling.get("nodeSelector"), "scheduling.nodeSelector")
        errors += _validate_tolerations(scheduling.get("tolerations") or [], "scheduling.tolerations")
    return errors


def _validate_tolerations(tolerations: list[Object], path: str) -> Errors:
    errors = validate_tolerations(tolerations, path)
    seen = set()
    for index, toleration in enumerate(tolerations):
        key = tuple(toleration.get(field, "") for field in ("key", "operator", "value", "effect"))
        if key in seen:
            errors.append(duplicate(f"{path}[{index}]", internal_form("core.Toleration", toleration)))
        seen.add(key)
    return errors


def _warnings(obj: Object) -> list[str]:
    selector = (obj.get("scheduling") or {}).get("nodeSelector") or {}
    return [
        f"scheduling.nodeSelector: {why}"
        for key in sorted(selector)
        if (why := DEPRECATED.get(key)) is not None
    ]


strategy = RuntimeClassStrategy()
