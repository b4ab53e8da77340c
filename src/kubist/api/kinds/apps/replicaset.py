"""ReplicaSet: a stable number of identical pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from kubist.api.kinds.core.podspec import default_pod_template
from kubist.api.kinds.shared.update import immutable
from kubist.api.kinds.shared.values import nonnegative_fields
from kubist.api.kinds.shared.workload import Workload, validate_counts, validate_replica_template
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


class ReplicaSetStrategy(Workload):
    names_pods = True
    always_scaled = True
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
        spec, before = new["spec"], old["spec"] if old is not None else None
        errors = nonnegative_fields(spec, "spec", ("replicas", "minReadySeconds"))
        errors += validate_replica_template(ctx, spec, before)
        if before is not None:
            errors += immutable(spec.get("selector"), before.get("selector"), "spec.selector")
        return errors


strategy = ReplicaSetStrategy()
