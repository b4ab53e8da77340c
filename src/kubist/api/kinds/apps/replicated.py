"""Validation shared by Deployments, ReplicaSets and StatefulSets: selector, template and status counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kubist.api.kinds.shared.numbers import nonnegative
from kubist.api.kinds.shared.workload import Workload, shown_labels, template_labels, validate_template
from kubist.api.resources.strategy import Errors
from kubist.model.meta.fields import forbidden, invalid, not_supported, required
from kubist.model.meta.labels import is_empty, selector_matches, validate_selector
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context


class Replicated(Workload):
    """Workload whose spec.replicas is always present, also in a bookmark (as 0)."""

    def complete_bookmark(self, obj: Object) -> None:
        obj["spec"]["replicas"] = 0


def validate_own_selector(spec: Object, kind: str, path: str = "spec") -> Errors:
    """Validates that the selector is present and not empty. `kind` is the workload's name in the message."""
    selector = spec.get("selector")
    if selector is None:
        return [required(f"{path}.selector")]
    errors = validate_selector(selector, f"{path}.selector")
    if is_empty(selector):
        errors.append(invalid(f"{path}.selector", selector, f"empty selector is invalid for {kind}"))
    return errors


def validate_selected_labels(spec: Object, path: str = "spec") -> Errors:
    """Validates that the selector matches the labels of the pod template."""
    selector = spec.get("selector")
    labels = template_labels(spec["template"])
    if selector_matches(selector, labels):
        return []
    shown = shown_labels(spec["template"])
    return [invalid(f"{path}.template.metadata.labels", shown, "`selector` does not match template `labels`")]


def validate_replica_template(ctx: Context, spec: Object, old: Object | None, path: str = "spec") -> Errors:
    """Validates the template of a ReplicaSet or Deployment. Skipped if the selector is invalid."""
    selector = spec.get("selector")
    if validate_selector(selector, path):
        return [invalid(f"{path}.selector", selector, "invalid label selector")]
    template = spec["template"]
    errors = validate_selected_labels(spec, path)
    errors += validate_template(ctx, template, f"{path}.template", old["template"] if old else None)
    return errors + validate_runs_forever(template, "ReplicaSet", f"{path}.template")


def validate_runs_forever(template: Object, kind: str, path: str) -> Errors:
    """Rejects a restartPolicy other than Always, and activeDeadlineSeconds."""
    spec = template["spec"]
    errors = []
    policy = spec.get("restartPolicy", "")
    if policy != "Always":
        errors.append(not_supported(f"{path}.spec.restartPolicy", policy, ["Always"]))
    if "activeDeadlineSeconds" in spec:
        why = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(forbidden(f"{path}.spec.activeDeadlineSeconds", why))
    return errors


def validate_counts(status: Object, parts: Iterable[str], ready: str = "readyReplicas") -> Errors:
    """Validates counts: no part exceeds status.replicas, and availableReplicas does not exceed readyReplicas."""
    replicas = status.get("replicas", 0)
    errors = [
        invalid(f"status.{part}", status.get(part, 0), "cannot be greater than status.replicas")
        for part in parts
        if status.get(part, 0) > replicas
    ]
    available = status.get("availableReplicas", 0)
    if available > status.get("readyReplicas", 0):
        errors.append(invalid("status.availableReplicas", available, f"cannot be greater than {ready}"))
    return errors


def validate_collision_count(new: Object, old: Object) -> Errors:
    """Validates that collisionCount does not decrease. An absent count is zero."""
    count = (new.get("status") or {}).get("collisionCount")
    before = (old.get("status") or {}).get("collisionCount")
    if before is None or (count is not None and count >= before):
        return []
    return [invalid("status.collisionCount", count or 0, "cannot be decremented")]


def validate_history_limit(spec: Object, path: str = "spec") -> Errors:
    return nonnegative(spec.get("revisionHistoryLimit"), f"{path}.revisionHistoryLimit")
