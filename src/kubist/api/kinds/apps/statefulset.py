"""StatefulSet: pods with stable ordinals and their own storage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from kubist.api.kinds.core.podspec import default_pod_template
from kubist.api.kinds.core.podspec.annotations import validate_pod_annotations
from kubist.api.kinds.core.podspec.options import Options
from kubist.api.kinds.core.podspec.volumeclaims import (
    claim_spec_warnings,
    default_claim_spec,
    validate_claim_spec,
)
from kubist.api.kinds.shared.values import (
    int_or_percent_value,
    nonnegative,
    nonnegative_fields,
    validate_at_most_100_percent,
    validate_int_or_percent,
)
from kubist.api.kinds.shared.workload import (
    Workload,
    shown_strategy,
    validate_collision_count,
    validate_counts,
    validate_own_selector,
    validate_runs_forever,
    validate_selected_labels,
    validate_template,
)
from kubist.api.resources.strategy import Errors, Scale, Status, Subresource
from kubist.model.meta import names, objectmeta
from kubist.model.meta.fields import forbidden, invalid, not_supported, required
from kubist.model.meta.labels import validate_labels
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

COUNTS = (
    "replicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "availableReplicas",
    "observedGeneration",
    "collisionCount",
)
MUTABLE = (
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
)
RETENTION_POLICIES = ("Retain", "Delete")


class StatefulSetStatus(Status):
    metadata_rules = ()

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        status = new.get("status") or {}
        errors = nonnegative_fields(status, "status", COUNTS)
        parts = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
        errors += validate_counts(status, parts, ready="status.readyReplicas")
        errors += objectmeta.validate_update(new["metadata"], old["metadata"])
        return errors + validate_collision_count(new, old)


class StatefulSetStrategy(Workload):
    always_scaled = True
    validate_name = staticmethod(names.dns_label)
    first_status: ClassVar = {"replicas": 0, "availableReplicas": 0}
    subresources: Mapping[str, Subresource] = {
        "status": StatefulSetStatus(),
        "scale": Scale(),
    }

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        default_pod_template(spec.setdefault("template", {}))
        spec.setdefault("podManagementPolicy", "OrderedReady")
        strategy = spec.setdefault("updateStrategy", {})
        if "type" not in strategy:
            strategy["type"] = "RollingUpdate"
            strategy.setdefault("rollingUpdate", {})
        if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
            strategy["rollingUpdate"].setdefault("partition", 0)
        retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        retention.setdefault("whenDeleted", "Retain")
        retention.setdefault("whenScaled", "Retain")
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        for claim in spec.get("volumeClaimTemplates") or ():
            _default_claim(claim)

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        super().prepare(ctx, new, old)
        _drop_max_unavailable(new, old)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        spec = new["spec"]
        if old is None:
            return _validate_spec(ctx, spec, None, check_template=True)
        old_spec = old["spec"]
        was_valid = not _validate_spec(ctx, old_spec, old_spec, check_template=True)
        errors = _validate_spec(ctx, spec, old_spec, check_template=was_valid)
        fields = (spec.keys() | old_spec.keys()).difference(MUTABLE)
        if any(spec.get(field) != old_spec.get(field) for field in fields):
            why = (
                "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
                "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
                "'minReadySeconds' are forbidden"
            )
            errors.append(forbidden("spec", why))
        return errors

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        suffix = "" if old is None else ".Spec"
        return [*super().warnings(ctx, new, old), *_warnings(new["spec"], suffix)]


def _default_claim(claim: Object) -> None:
    claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
    default_claim_spec(claim.setdefault("spec", {}))
    claim.setdefault("status", {}).setdefault("phase", "Pending")


def _drop_max_unavailable(new: Object, old: Object | None) -> None:
    """Drops maxUnavailable, because its feature gate is off. Objects that already have the field keep it."""
    rolling_update = (new["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    before = ((old or {}).get("spec", {}).get("updateStrategy") or {}).get("rollingUpdate") or {}
    if "maxUnavailable" not in before:
        rolling_update.pop("maxUnavailable", None)


def _warnings(spec: Object, suffix: str) -> Iterable[str]:
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        yield from claim_spec_warnings(claim["spec"], f"spec.volumeClaimTemplates[{index}]{suffix}")
    if spec.get("revisionHistoryLimit", 0) < 0:
        yield (
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is "
            "recommended"
        )


def _validate_spec(ctx: Context, spec: Object, old: Object | None, *, check_template: bool) -> Errors:
    errors = _validate_pod_management(spec.get("podManagementPolicy", ""), "spec.podManagementPolicy")
    errors += _validate_update_strategy(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    retention = spec.get("persistentVolumeClaimRetentionPolicy")
    if retention is not None:
        for field in ("whenDeleted", "whenScaled"):
            policy = retention.get(field, "")
            if policy not in RETENTION_POLICIES:
                path = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
                errors.append(not_supported(path, policy, RETENTION_POLICIES))
    if old is None:
        for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            errors += validate_claim_spec(claim["spec"], f"spec.volumeClaimTemplates[{index}].spec")
    errors += nonnegative_fields(spec, "spec", ("replicas", "minReadySeconds"))
    errors += nonnegative((spec.get("ordinals") or {}).get("start"), "spec.ordinals.start")
    service = spec.get("serviceName")
    if old is None and service:
        errors += [invalid("spec.serviceName", service, message) for message in names.dns_label(service)]
    errors_of_selector, is_malformed = validate_own_selector(spec, "statefulset")
    errors += errors_of_selector
    if is_malformed:
        errors.append(invalid("spec.selector", spec["selector"], ""))
    else:
        errors += validate_selected_labels(spec)
        errors += _validate_template(ctx, spec, old, check_template)
    return errors + validate_runs_forever(spec["template"], "StatefulSet", "spec.template")


def _validate_template(ctx: Context, spec: Object, old: Object | None, check_template: bool) -> Errors:
    path = "spec.template"
    template = _effective_template(spec)
    errors: Errors = []
    if check_template:
        errors += validate_template(ctx, template, path, _effective_template(old) if old else None)
    meta = template.get("metadata") or {}
    annotations = meta.get("annotations") or {}
    errors += validate_labels(meta.get("labels"), f"{path}.labels")
    if annotations:
        errors += objectmeta.validate_annotations(annotations, f"{path}.annotations")
        errors += validate_pod_annotations(annotations, template["spec"], f"{path}.annotations", Options())
    return errors


def _effective_template(spec: Object) -> Object:
    """Template as validated: without hostname and subdomain, which the controller sets, and with the claims'
    volumes."""
    template: Object = spec["template"]
    pod = template["spec"]
    claims = {claim.get("metadata", {}).get("name", "") for claim in spec.get("volumeClaimTemplates") or ()}
    if not claims and not pod.get("hostname") and not pod.get("subdomain"):
        return template
    pod = {name: value for name, value in pod.items() if name not in ("hostname", "subdomain")}
    if claims:
        volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in sorted(claims)]
        volumes += [volume for volume in pod.get("volumes") or () if volume.get("name") not in claims]
        pod["volumes"] = volumes
    return {**template, "spec": pod}


def _validate_pod_management(policy: str, path: str) -> Errors:
    if not policy:
        return [required(path)]
    if policy in ("OrderedReady", "Parallel"):
        return []
    return [invalid(path, policy, "must be 'OrderedReady' or 'Parallel'")]


def _validate_update_strategy(strategy: Object, path: str) -> Errors:
    rolling_update = strategy.get("rollingUpdate")
    shown = shown_strategy(strategy, partition=0, maxUnavailable=None)
    match strategy.get("type", ""):
        case "":
            return [required(path)]
        case "OnDelete":
            if rolling_update is None:
                return []
            why = "only allowed for updateStrategy 'RollingUpdate'"
            return [invalid(f"{path}.rollingUpdate", shown["RollingUpdate"], why)]
        case "RollingUpdate":
            return _validate_rolling_update(rolling_update or {}, f"{path}.rollingUpdate")
    return [invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'")]


def _validate_rolling_update(rolling_update: Object, path: str) -> Errors:
    errors = nonnegative(rolling_update.get("partition"), f"{path}.partition")
    unavailable = rolling_update.get("maxUnavailable")
    if unavailable is not None:
        errors += validate_int_or_percent(unavailable, f"{path}.maxUnavailable")
        if int_or_percent_value(unavailable) == 0:
            errors.append(invalid(f"{path}.maxUnavailable", unavailable, "cannot be 0"))
        errors += validate_at_most_100_percent(unavailable, f"{path}.maxUnavailable")
    return errors


strategy = StatefulSetStrategy()
