"""Validation of a HorizontalPodAutoscaler's metrics: sources and targets."""

from __future__ import annotations

from collections.abc import Callable

from kubist.api.kinds.shared.resourcenames import validate_container_resource_name
from kubist.api.resources.strategy import Errors
from kubist.model.meta import names
from kubist.model.meta.fields import forbidden, invalid, not_supported, required
from kubist.model.meta.object import Object

TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")
TARGET_TYPES = ("Utilization", "Value", "AverageValue")


def validate_metrics(
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
    if kind not in TYPES:
        errors.append(not_supported(f"{path}.type", kind, TYPES))
    present = [source for source in _SOURCES if source in metric]
    if present:
        source = present[0]
        if source == "object":
            errors += validate_reference(
                metric["object"].get("describedObject") or {},
                f"{path}.object.describedObject",
                allow_empty_group=True,
                any_api_version=any_api_version,
            )
        errors += _SOURCES[source](metric[source], f"{path}.{source}")
    if kind in TYPES:
        expected = kind[0].lower() + kind[1:]
        if expected not in metric:
            why = "must populate information for the given metric source"
            errors.append(required(f"{path}.{expected}", why))
    else:
        expected = ""
        errors.append(not_supported(f"{path}.type", kind, TYPES))
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
    if kind not in TARGET_TYPES:
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


def validate_reference(
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
    if not any_api_version and (why := api_version_error(version, allow_empty_group=allow_empty_group)):
        errors.append(invalid(f"{path}.apiVersion", version, why))
    return errors


def api_version_error(version: str, *, allow_empty_group: bool) -> str:
    """Error message for the apiVersion of a reference, "" if it is valid."""
    if version.count("/") > 1:
        return f"unexpected GroupVersion string: {version}"
    if not allow_empty_group and not version.rpartition("/")[0]:
        return "apiVersion must specify API group"
    return ""
