"""ReplicaSet: a stable number of identical pods."""

from __future__ import annotations

from collections.abc import Iterable
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
from kubist.api.resources.strategy import Connect, Create, Errors, Scale, Status, Update
from kubist.model.meta import objectmeta
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
    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        status = new.get("status") or {}
        errors = objectmeta.validate_update(new["metadata"], old["metadata"])
        errors += nonnegative_fields(status, "status", COUNTS)
        return errors + validate_counts(
            status, ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
        )


class ReplicaSetStrategy(Replicated):
    initial_status: ClassVar[Object] = {"replicas": 0}
    subresources: ClassVar[dict[str, Update | Scale | Create | Connect]] = {
        "status": ReplicaSetStatus(),
        "scale": Scale(),
    }

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        default_pod_template(spec.setdefault("template", {}))
        spec.setdefault("replicas", 1)

    def validate_create(self, ctx: Context, obj: Object) -> Errors:
        return _validate_spec(ctx, obj["spec"], None)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        errors = objectmeta.validate_update(new["metadata"], old["metadata"])
        errors += _validate_spec(ctx, new["spec"], old["spec"])
        return errors + immutable(new["spec"].get("selector"), old["spec"].get("selector"), "spec.selector")

    def warnings_on_create(self, ctx: Context, obj: Object) -> Iterable[str]:
        return [*name_warnings(obj), *super().warnings_on_create(ctx, obj)]


def _validate_spec(ctx: Context, spec: Object, old: Object | None) -> Errors:
    errors = nonnegative_fields(spec, "spec", ("replicas", "minReadySeconds"))
    errors += validate_own_selector(spec, "deployment")
    return errors + validate_replica_template(ctx, spec, old)


strategy = ReplicaSetStrategy()
