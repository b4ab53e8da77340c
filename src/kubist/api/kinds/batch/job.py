"""Job: runs pods until enough of them have succeeded."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kubist.api.kinds.batch.jobspec import default_job_template, job_spec_warnings, validate_job_spec
from kubist.api.kinds.batch.jobstatus import JobStatus, default_labels, is_true
from kubist.api.kinds.shared.update import immutable
from kubist.api.kinds.shared.workload import Workload, shown_labels, template_labels
from kubist.api.resources.strategy import Errors, Subresource
from kubist.model.meta import names, objectmeta
from kubist.model.meta.fields import invalid, required
from kubist.model.meta.labels import has_invalid_values, selector_matches, validate_selector
from kubist.model.meta.object import Object
from kubist.model.schema.catalog import by_name
from kubist.model.schema.order import in_declared_order

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

_SELECTOR = by_name("io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector")
CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"
LEGACY_CONTROLLER_UID = "controller-uid"
LEGACY_JOB_NAME = "job-name"
MAX_INT32 = 2**31 - 1


class JobStrategy(Workload):
    default_propagation = "Orphan"
    names_pods = True
    metadata_rules = ("object",)
    field_labels: Mapping[str, str] = {"status.successful": "status.succeeded"}
    subresources: Mapping[str, Subresource] = {"status": JobStatus()}

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        default_job_template(spec)
        if "completions" not in spec and "parallelism" not in spec:
            spec["completions"] = 1
        spec.setdefault("parallelism", 1)
        spec.setdefault("backoffLimit", MAX_INT32 if "backoffLimitPerIndex" in spec else 6)
        spec.setdefault("completionMode", "NonIndexed")
        spec.setdefault("suspend", False)
        spec.setdefault(
            "podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
        )
        spec.setdefault("manualSelector", False)
        default_labels(obj)

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        if old is None and not new["spec"]["manualSelector"]:
            _generate_selector(new)
        super().prepare(ctx, new, old)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        errors = _validate(ctx, new, old)
        if old is not None:
            errors += objectmeta.validate_update(new["metadata"], old["metadata"])
            return errors + _validate_change(ctx, new, old)
        # The Job gets the generated labels only now, so that validation reports them only at the template.
        default_labels(new)
        return errors

    def template_warnings(self, obj: Object) -> list[str]:
        return job_spec_warnings(obj["spec"], "spec")

    def before_delete(self, ctx: Context, name: str, propagation: str) -> None:
        if not propagation:
            ctx.warn(
                "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background "
                "to remove them or set propagationPolicy=Orphan to suppress this warning"
            )

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        return {"status.successful": str((obj.get("status") or {}).get("succeeded", 0))}

    def unsupported_field_label(self, label: str) -> str:
        return f'field label "{label}" not supported for Job'


def _generate_selector(obj: Object) -> None:
    """Adds the labels and the selector that identify the Job's pods by its name and uid."""
    meta = obj["metadata"]
    name, uid = meta.get("name", ""), meta.get("uid", "")
    labels = obj["spec"]["template"].setdefault("metadata", {}).setdefault("labels", {})
    for label in (LEGACY_JOB_NAME, JOB_NAME):
        labels.setdefault(label, name)
    for label in (LEGACY_CONTROLLER_UID, CONTROLLER_UID):
        labels.setdefault(label, uid)
    selector = obj["spec"].setdefault("selector", {})
    selector.setdefault("matchLabels", {}).setdefault(CONTROLLER_UID, uid)


def _validate(ctx: Context, obj: Object, old: Object | None) -> Errors:
    """Validates the Job except its metadata."""
    spec = obj["spec"]
    old_labels = template_labels(old["spec"]["template"]) if old else None
    prefixed = old_labels is None or (JOB_NAME in old_labels and CONTROLLER_UID in old_labels)
    errors = _validate_generated_selector(obj, prefixed)
    errors += _validate_spec(ctx, spec, old["spec"] if old else None)
    name = obj["metadata"].get("name", "")
    if spec.get("completionMode") == "Indexed" and spec.get("completions", 0) > 0:
        hostname = f"{name}-{spec['completions'] - 1}"
        if names.dns_label(hostname):
            why = f"will not able to create pod with invalid DNS label: {hostname}"
            errors.append(invalid("metadata.name", name, why))
    return errors


def _validate_spec(ctx: Context, spec: Object, old: Object | None) -> Errors:
    errors = validate_job_spec(ctx, spec, old, "spec")
    selector = spec.get("selector")
    if selector is None:
        errors.append(required("spec.selector"))
    else:
        tolerant = old is not None and has_invalid_values(old.get("selector"))
        errors += validate_selector(selector, "spec.selector", allow_invalid_values=tolerant)
    labels = template_labels(spec["template"])
    if not validate_selector(selector, "") and not selector_matches(selector, labels):
        value = shown_labels(spec["template"])
        why = "`selector` does not match template `labels`"
        errors.append(invalid("spec.template.metadata.labels", value, why))
    return errors


def _validate_generated_selector(obj: Object, prefixed: bool) -> Errors:
    spec, meta = obj["spec"], obj["metadata"]
    selector = spec.get("selector")
    if spec.get("manualSelector") or selector is None:
        return []
    name, uid = meta.get("name", ""), meta.get("uid", "")
    expected = {LEGACY_CONTROLLER_UID: uid, LEGACY_JOB_NAME: name}
    if prefixed:
        expected |= {CONTROLLER_UID: uid, JOB_NAME: name}
    errors = [] if uid else [required("metadata.uid")]
    labels = template_labels(spec["template"])
    path = "spec.template.metadata.labels"
    for label, value in expected.items():
        if label not in labels:
            errors.append(required(f"{path}[{label}]", f"must be '{value}'"))
        elif labels[label] != value:
            sorted_labels = dict(sorted(labels.items()))
            errors.append(invalid(f"{path}[{label}]", sorted_labels, f"must be '{value}'"))
    if not validate_selector(selector, "") and not selector_matches(selector, expected):
        shown_selector = in_declared_order(_SELECTOR, selector)
        errors.append(invalid("spec.selector", shown_selector, "`selector` not auto-generated"))
    return errors


def _validate_change(ctx: Context, new: Object, old: Object) -> Errors:
    spec, old_spec = new["spec"], old["spec"]
    errors = _validate_spec(ctx, spec, old_spec)
    errors += _validate_completions(spec, old_spec)
    errors += immutable(spec.get("selector"), old_spec.get("selector"), "spec.selector")
    errors += _validate_template_change(new, old)
    for field, type in (
        ("completionMode", "nullable"),
        ("podFailurePolicy", "*batch.PodFailurePolicy"),
        ("backoffLimitPerIndex", "nullable"),
        ("managedBy", "nullable"),
        ("successPolicy", "*batch.SuccessPolicy"),
    ):
        errors += immutable(spec.get(field), old_spec.get(field), f"spec.{field}", type)
    return errors


def _validate_completions(spec: Object, old: Object) -> Errors:
    """Validates a change of completions: only an Indexed job may change them, together with parallelism."""
    completions = spec.get("completions")
    if spec.get("completionMode") != "Indexed":
        return immutable(completions, old.get("completions"), "spec.completions")
    if completions in (None, old.get("completions")) or completions == spec.get("parallelism"):
        return []
    return [invalid("spec.completions", completions, "can only be modified in tandem with spec.parallelism")]


def _validate_template_change(new: Object, old: Object) -> Errors:
    """Rejects changes of the template, except scheduling fields and resources while the Job is suspended without
    pods."""
    template, old_template = new["spec"]["template"], old["spec"]["template"]
    if template == old_template:
        return []
    status = old.get("status") or {}
    idle = (
        bool(old["spec"].get("suspend"))
        and ("startTime" not in status or is_true(old, "Suspended"))
        and not status.get("active")
    )
    if not idle:
        return immutable(template, old_template, "spec.template", "core.PodTemplateSpec")
    expected = copy.deepcopy(old_template["spec"])
    _take_over_scheduling(expected, template["spec"])
    _take_over_resources(expected, template["spec"])
    return immutable(template["spec"], expected, "spec.template.spec", "core.PodSpec")


def _take_over_scheduling(expected: Object, pod: Object) -> None:
    for field in ("nodeSelector", "tolerations", "schedulingGates"):
        if field in pod:
            expected[field] = pod[field]
        else:
            expected.pop(field, None)
    affinity = pod.get("affinity")
    allowed = {**expected.get("affinity", {})}
    allowed.pop("nodeAffinity", None)
    if affinity and "nodeAffinity" in affinity:
        allowed["nodeAffinity"] = affinity["nodeAffinity"]
    if allowed or affinity is not None:
        expected["affinity"] = allowed
    else:
        expected.pop("affinity", None)


def _take_over_resources(expected: Object, pod: Object) -> None:
    for field in ("containers", "initContainers"):
        ours, theirs = expected.get(field) or [], pod.get(field) or []
        if len(ours) != len(theirs):
            continue
        for container, changed in zip(ours, theirs, strict=True):
            if container.get("name") == changed.get("name"):
                container.pop("resources", None)
                if "resources" in changed:
                    container["resources"] = changed["resources"]


strategy = JobStrategy()
