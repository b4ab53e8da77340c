"""ReplicationController: predecessor of ReplicaSet. Its selector is a plain map of labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from kubist.api.kinds.core.podspec import default_pod_template
from kubist.api.kinds.shared.values import nonnegative_fields
from kubist.api.kinds.shared.workload import (
    Workload,
    shown_labels,
    template_labels,
    validate_counts,
    validate_runs_forever,
    validate_template,
)
from kubist.api.resources.strategy import Errors, Scale, Status, Subresource
from kubist.model.meta import names
from kubist.model.meta.fields import invalid, required
from kubist.model.meta.labels import selector_matches
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

COUNTS = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")


class ReplicationControllerStatus(Status):
    def prepare(self, ctx: Context, new: Object, old: Object) -> None:
        _default_labels(new)

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        status = new.get("status") or {}
        errors = nonnegative_fields(status, "status", COUNTS)
        return errors + validate_counts(status, COUNTS[1:4])


class ReplicationControllerScale(Scale):
    plain_selector = True


class ReplicationControllerStrategy(Workload):
    default_propagation = "Orphan"
    names_pods = True
    first_status: ClassVar = {"replicas": 0}
    field_labels: Mapping[str, str] = {"status.replicas": "status.replicas"}
    subresources: Mapping[str, Subresource] = {
        "status": ReplicationControllerStatus(),
        "scale": ReplicationControllerScale(),
    }

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        return [] if prefix else names.dns_subdomain(name, prefix)

    def default(self, obj: Object) -> None:
        """Sets the defaults. Selector and labels default to the template's labels."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("replicas", 1)
        template = spec.get("template")
        if template is not None:
            default_pod_template(template)
            _default_labels(obj)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        return _validate_spec(ctx, new["spec"], old["spec"] if old is not None else None)

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        """Warns about the old template on an update, not the new one, like kube-apiserver."""
        if old is not None and self.raises_generation(new, old):
            return self.template_warnings(old)
        return super().warnings(ctx, new, old)


def _default_labels(controller: Object) -> None:
    spec, metadata = controller["spec"], controller.setdefault("metadata", {})
    labels = template_labels(spec.get("template") or {})
    if labels and not spec.get("selector"):
        spec["selector"] = dict(labels)
    if labels and not metadata.get("labels"):
        metadata["labels"] = dict(labels)


def _validate_spec(ctx: Context, spec: Object, old: Object | None) -> Errors:
    errors = nonnegative_fields(spec, "spec", ("minReadySeconds",))
    selector, template = spec.get("selector"), spec.get("template")
    if not selector:
        errors.append(required("spec.selector"))
    errors += nonnegative_fields(spec, "spec", ("replicas",))
    if template is None:
        return [*errors, required("spec.template")]
    labels = template_labels(template)
    if selector and not selector_matches({"matchLabels": selector}, labels):
        why = "`selector` does not match template `labels`"
        errors.append(invalid("spec.template.metadata.labels", shown_labels(template), why))
    errors += validate_template(ctx, template, "spec.template", old.get("template") if old else None)
    return errors + validate_runs_forever(template, "ReplicationController", "spec.template")


strategy = ReplicationControllerStrategy()
