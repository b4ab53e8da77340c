"""ReplicaSet: a stable number of identical pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from kubist.api.kinds.apps.replicated import (
    Replicated,
    validate_counts,
    validate_own_selector,
    validate_replica_template,
)
from kubist.api.kinds.core.podspec import default_pod_template
from kubist.api.kinds.shared.numbers import nonnegative_fields
from kubist.api.kinds.shared.update import immutable
from kubist.api.kinds.shared.workload import name_warnings
from kubist.api.resources.strategy import Errors, Scale, Status, Subresource
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

COUNTS = (
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
    "terminatingReplicas",
)


class ReplicaSetStatus(Status):
    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        status = new.get("status") or {}
        errors = nonnegative_fields(status, "status", COUNTS)
        return errors + validate_counts(
            status, ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
        )


class ReplicaSetStrategy(Replicated):
    first_status: ClassVar = {"replicas": 0}
    subresources: Mapping[str, Subresource] = {
        "status": ReplicaSetStatus(),
        "scale": Scale(),
    }

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        default_pod_template(spec.setdefault("template", {}))
        spec.setdefault("replicas", 1)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        spec = new["spec"]
        errors = nonnegative_fields(spec, "spec", ("replicas", "minReadySeconds"))
        errors += validate_own_selector(spec, "deployment")
        if old is None:
            return errors + validate_replica_template(ctx, spec, None)
        errors += validate_replica_template(ctx, spec, old["spec"])
        return errors + immutable(spec.get("selector"), old["spec"].get("selector"), "spec.selector")

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        warnings = super().warnings(ctx, new, old)
        return warnings if old is not None else [*name_warnings(new), *warnings]


strategy = ReplicaSetStrategy()
