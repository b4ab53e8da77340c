"""HorizontalPodAutoscaler: scales replicas by metrics. Stored as autoscaling/v2, also served as v1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from kubist.api.kinds.autoscaling import v1conversion
from kubist.api.kinds.shared.resource_names import validate_container_resource_name
from kubist.api.kinds.shared.values import nonnegative_fields
from kubist.api.resources.strategy import Errors, Status, Strategy, Subresource
from kubist.model.meta import names
from kubist.model.meta.fields import forbidden, invalid, not_supported, required
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
            # No default policies are added, because validation rejects rules without policies.
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
        own_rules = behavior.get(direction)
        if own_rules is not None and not add_policies:
            del rules["policies"]
        behavior[direction] = rules | (own_rules or {})


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
    errors += _validate_reference(
        target,
        "spec.scaleTargetRef",
        allow_empty_group=target.get("kind") == "ReplicationController",
        any_api_version=old is not None
        and all(target.get(field) == old_target.get(field) for field in ("apiVersion", "kind")),
    )
    errors += _validate_metrics(
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
    return bool(_api_version_error(described.get("apiVersion", ""), allow_empty_group=True))


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


_TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")
_TARGET_TYPES = ("Utilization", "Value", "AverageValue")


def _validate_metrics(
    metrics: list[Object], min_replicas: int | None, path: str, *, any_api_version: bool
) -> Errors:
    errors: Errors = []
    for index, metric in enumerate(metrics):
        errors += _validate_metric(metric, f"{path}[{index}]", any_api_version)
    wakeable = any(metric.get("type") in ("Object", "External") for metric in metrics)
    if min_replicas == 0 and not wakeable:
        why = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(forbidden(path, why))
    return errors


def _validate_metric(metric: Object, path: str, any_api_version: bool) -> Errors:
    kind = metric.get("type", "")
    errors = [] if kind else [required(f"{path}.type", "must specify a metric source type")]
    if kind not in _TYPES:
        errors.append(not_supported(f"{path}.type", kind, _TYPES))
    present = [source for source in _SOURCES if source in metric]
    if present:
        source = present[0]
        if source == "object":
            errors += _validate_reference(
                metric["object"].get("describedObject") or {},
                f"{path}.object.describedObject",
                allow_empty_group=True,
                any_api_version=any_api_version,
            )
        errors += _SOURCES[source](metric[source], f"{path}.{source}")
    if kind in _TYPES:
        expected = kind[0].lower() + kind[1:]
        if expected not in metric:
            why = "must populate information for the given metric source"
            errors.append(required(f"{path}.{expected}", why))
    else:
        expected = ""
        errors.append(not_supported(f"{path}.type", kind, _TYPES))
    if len(present) != 1:
        errors += [
            forbidden(f"{path}.{source}", "must populate the given metric source only")
            for source in present
            if source != expected
        ]
    return errors


def _validate_source(source: Object, path: str, one_of: tuple[str, ...], why: str) -> Errors:
    """Validates the metric and the target, which must have one of the fields `one_of`."""
    target = source.get("target") or {}
    errors = _validate_identifier(source.get("metric") or {}, f"{path}.metric")
    errors += _validate_target(target, f"{path}.target")
    if not any(field in target for field in one_of):
        errors.append(required(f"{path}.target.averageValue", why))
    return errors


def _validate_object(source: Object, path: str) -> Errors:
    why = "must set either a target value or averageValue"
    return _validate_source(source, path, ("value", "averageValue"), why)


def _validate_external(source: Object, path: str) -> Errors:
    why = "must set either a target value for metric or a per-pod target"
    errors = _validate_source(source, path, ("value", "averageValue"), why)
    target = source.get("target") or {}
    if "value" in target and "averageValue" in target:
        why = "may not set both a target value for metric and a per-pod target"
        errors.append(forbidden(f"{path}.target.value", why))
    return errors


def _validate_pods(source: Object, path: str) -> Errors:
    return _validate_source(source, path, ("averageValue",), "must specify a positive target averageValue")


def _validate_resource(source: Object, path: str) -> Errors:
    errors = [] if source.get("name") else [required(f"{path}.name", "must specify a resource name")]
    return errors + _validate_resource_target(source, path)


def _validate_container_resource(source: Object, path: str) -> Errors:
    name, container = source.get("name"), source.get("container")
    if name:
        errors = validate_container_resource_name(name, f"{path}.name")
    else:
        errors = [required(f"{path}.name", "must specify a resource name")]
    if container:
        errors += [invalid(f"{path}.container", container, message) for message in names.dns_label(container)]
    else:
        errors.append(required(f"{path}.container", "must specify a container"))
    return errors + _validate_resource_target(source, path)


def _validate_resource_target(source: Object, path: str) -> Errors:
    target = source.get("target") or {}
    errors = _validate_target(target, f"{path}.target")
    if "averageUtilization" not in target and "averageValue" not in target:
        why = "must set either a target raw value or a target utilization"
        errors.append(required(f"{path}.target.averageUtilization", why))
    if "averageUtilization" in target and "averageValue" in target:
        why = "may not set both a target raw value and a target utilization"
        errors.append(forbidden(f"{path}.target.averageValue", why))
    return errors


_SOURCES: dict[str, Callable[[Object, str], Errors]] = {
    "object": _validate_object,
    "external": _validate_external,
    "pods": _validate_pods,
    "resource": _validate_resource,
    "containerResource": _validate_container_resource,
}
"""Validators of metric sources, in the order of the checks. With several sources only the first is validated."""


def _validate_target(target: Object, path: str) -> Errors:
    kind = target.get("type", "")
    errors = [] if kind else [required(f"{path}.type", "must specify a metric target type")]
    if kind not in _TARGET_TYPES:
        errors.append(invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for field in ("value", "averageValue"):
        quantity = target.get(field)
        if quantity is not None and (quantity == "0" or quantity.startswith("-")):
            errors.append(invalid(f"{path}.{field}", quantity, "must be positive"))
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        errors.append(invalid(f"{path}.averageUtilization", utilization, "must be greater than 0"))
    return errors


def _validate_identifier(metric: Object, path: str) -> Errors:
    name = metric.get("name")
    if not name:
        return [required(f"{path}.name", "must specify a metric name")]
    return [invalid(f"{path}.name", name, message) for message in names.path_segment(name)]


def _validate_reference(
    reference: Object, path: str, *, allow_empty_group: bool, any_api_version: bool
) -> Errors:
    """Validates a CrossVersionObjectReference. `any_api_version` skips apiVersion, for a value that is already
    stored."""
    errors: Errors = []
    for field in ("kind", "name"):
        value = reference.get(field)
        if value:
            errors += [invalid(f"{path}.{field}", value, message) for message in names.path_segment(value)]
        else:
            errors.append(required(f"{path}.{field}"))
    version = reference.get("apiVersion", "")
    if not any_api_version and (why := _api_version_error(version, allow_empty_group=allow_empty_group)):
        errors.append(invalid(f"{path}.apiVersion", version, why))
    return errors


def _api_version_error(version: str, *, allow_empty_group: bool) -> str:
    """Error message for the apiVersion of a reference, "" if it is valid."""
    if version.count("/") > 1:
        return f"unexpected GroupVersion string: {version}"
    if not allow_empty_group and not version.rpartition("/")[0]:
        return "apiVersion must specify API group"
    return ""


strategy = HorizontalPodAutoscalerStrategy()
