"""HorizontalPodAutoscaler: scales replicas by metrics. Stored as autoscaling/v2, also served as v1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from kubist.api.kinds.autoscaling import v1conversion
from kubist.api.kinds.autoscaling.metrics import api_version_error, validate_metrics, validate_reference
from kubist.api.kinds.shared.values import nonnegative_fields
from kubist.api.resources.strategy import Errors, Status, Strategy, Subresource
from kubist.model.meta.fields import invalid, not_supported, required
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

MAX_PERIOD_SECONDS = 1800
MAX_STABILIZATION_WINDOW_SECONDS = 3600
POLICY_TYPES = ("Percent", "Pods")
SELECT_POLICIES = ("Disabled", "Max", "Min")


class HorizontalPodAutoscalerStatus(Status):
    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        return nonnegative_fields(new.get("status") or {}, "status", ("currentReplicas", "desiredReplicas"))


class HorizontalPodAutoscalerStrategy(Strategy):
    reset_fields = ("status",)
    first_status: ClassVar = {"desiredReplicas": 0, "currentMetrics": None}
    subresources: Mapping[str, Subresource] = {"status": HorizontalPodAutoscalerStatus()}

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("minReplicas", 1)
        if obj.get("apiVersion") == "autoscaling/v1":
            v1conversion.normalize_v1(obj)
            return
        v1conversion.drop_carried(obj)
        if not spec.get("metrics"):
            spec["metrics"] = [v1conversion.cpu_utilization(v1conversion.DEFAULT_CPU_UTILIZATION)]
        if "behavior" in spec:
            _default_behavior(spec["behavior"], add_policies=True)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        return _validate_spec(new["spec"], old["spec"] if old is not None else None)

    def convert(self, obj: Object, api_version: str) -> Object:
        if obj.get("apiVersion") == api_version:
            return obj
        if api_version == "autoscaling/v1":
            return v1conversion.to_v1(obj)
        obj = v1conversion.from_v1(obj)
        if "behavior" in obj["spec"]:
            # Validation rejects given rules that have no policies.
            _default_behavior(obj["spec"]["behavior"], add_policies=False)
        return obj


def _scale_up() -> dict[str, Any]:
    return {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [
            {"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ],
    }


def _scale_down() -> dict[str, Any]:
    return {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def _default_behavior(behavior: Object, *, add_policies: bool) -> None:
    for direction, rules in (("scaleUp", _scale_up()), ("scaleDown", _scale_down())):
        given = behavior.get(direction)
        if given is not None and not add_policies:
            del rules["policies"]
        behavior[direction] = rules | (given or {})


def _validate_spec(spec: Object, old: Object | None) -> Errors:
    before: Object = old or {}
    errors: Errors = []
    minimum, maximum = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    bound = 0 if before.get("minReplicas") == 0 else 1
    if minimum is not None and minimum < bound:
        errors.append(invalid("spec.minReplicas", minimum, f"must be greater than or equal to {bound}"))
    if maximum == 0:
        errors.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif maximum < 0:
        errors.append(invalid("spec.maxReplicas", maximum, "must be greater than or equal to 1"))
    if minimum is not None and maximum < minimum:
        why = "must be greater than or equal to `minReplicas`"
        errors.append(invalid("spec.maxReplicas", maximum, why))
    target, old_target = spec.get("scaleTargetRef") or {}, before.get("scaleTargetRef") or {}
    errors += validate_reference(
        target,
        "spec.scaleTargetRef",
        allow_empty_group=target.get("kind") == "ReplicationController",
        any_api_version=old is not None
        and all(target.get(field) == old_target.get(field) for field in ("apiVersion", "kind")),
    )
    errors += validate_metrics(
        spec.get("metrics") or [],
        minimum,
        "spec.metrics",
        any_api_version=any(map(_describes_invalid_version, before.get("metrics") or ())),
    )
    for direction in ("scaleUp", "scaleDown"):
        rules = (spec.get("behavior") or {}).get(direction)
        if rules is not None:
            errors += _validate_rules(rules, f"spec.behavior.{direction}")
    return errors


def _describes_invalid_version(metric: Object) -> bool:
    if metric.get("type") != "Object" or "object" not in metric:
        return False
    described = metric["object"].get("describedObject") or {}
    return bool(api_version_error(described.get("apiVersion", ""), allow_empty_group=True))


def _validate_rules(rules: Object, path: str) -> Errors:
    errors: Errors = []
    window = rules.get("stabilizationWindowSeconds", 0)
    if window < 0:
        why = "must be greater than or equal to zero"
        errors.append(invalid(f"{path}.stabilizationWindowSeconds", window, why))
    if window > MAX_STABILIZATION_WINDOW_SECONDS:
        why = f"must be less than or equal to {MAX_STABILIZATION_WINDOW_SECONDS}"
        errors.append(invalid(f"{path}.stabilizationWindowSeconds", window, why))
    select = rules.get("selectPolicy")
    if select is not None and select not in SELECT_POLICIES:
        errors.append(not_supported(f"{path}.selectPolicy", select, SELECT_POLICIES))
    policies = rules.get("policies") or []
    if not policies:
        errors.append(required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(policies):
        errors += _validate_policy(policy, f"{path}.policies[{index}]")
    tolerance = rules.get("tolerance")
    if tolerance is not None and tolerance.startswith("-"):
        errors.append(invalid(f"{path}.tolerance", tolerance, "must be greater than or equal to 0"))
    return errors


def _validate_policy(policy: Object, path: str) -> Errors:
    errors: Errors = []
    kind, value, period = policy.get("type", ""), policy.get("value", 0), policy.get("periodSeconds", 0)
    if kind not in POLICY_TYPES:
        errors.append(not_supported(f"{path}.type", kind, POLICY_TYPES))
    if value <= 0:
        errors.append(invalid(f"{path}.value", value, "must be greater than zero"))
    if period <= 0:
        errors.append(invalid(f"{path}.periodSeconds", period, "must be greater than zero"))
    if period > MAX_PERIOD_SECONDS:
        why = f"must be less than or equal to {MAX_PERIOD_SECONDS}"
        errors.append(invalid(f"{path}.periodSeconds", period, why))
    return errors


strategy = HorizontalPodAutoscalerStrategy()
