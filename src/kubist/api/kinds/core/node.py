"""Node: a machine that runs pods, with pod CIDRs, taints and a status that the kubelet reports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kubist.api.kinds.core.podspec.resources import round_up_to_milli
from kubist.api.kinds.core.service_proxy import split_name
from kubist.api.kinds.shared.ip import cidr_warnings, is_global_unicast, parse_cidr, parse_ip, validate_cidr
from kubist.api.kinds.shared.resource_names import validate_quantity
from kubist.api.kinds.shared.values import repeats
from kubist.api.resources.strategy import Connect, Errors, Status, Strategy, Subresource
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import names, objectmeta
from kubist.model.meta.fields import duplicate, forbidden, internal, invalid, not_supported, required
from kubist.model.meta.labels import validate_label_name
from kubist.model.meta.object import Object
from kubist.model.meta.status import bad_request, not_found, plain_error, unavailable
from kubist.model.schema.internals import internal_form

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

_PREFERRED = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
_KUBELET_PORT = 10250


class NodeProxy(Connect):
    methods = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")

    async def connect(self, ctx: Context) -> tuple[int, str, bytes]:
        """Validates the node and its address, then fails with 503 because this server does not reach kubelets."""
        scheme, name, port = split_name(ctx.name)
        if not name or scheme not in ("", "http", "https"):
            raise bad_request(f"invalid node request {quoted(ctx.name)}")
        node = ctx.objects.get("nodes", name)
        if node is None:
            raise not_found("", "nodes", name)
        known = node["status"].get("addresses") or []
        by_type = {address.get("type"): address.get("address", "") for address in reversed(known)}
        host = next((by_type[kind] for kind in _PREFERRED if kind in by_type), None)
        if host is None:
            raise plain_error(f"no preferred addresses found; known addresses: {known}")
        address = parse_ip(host)
        if address is not None and not is_global_unicast(address):
            raise bad_request("address not allowed")
        where = f"{host}:{port or _KUBELET_PORT}"
        raise unavailable(f"error trying to reach service: {where} is not reachable")


TAINTS_ANNOTATION = "scheduler.alpha.kubernetes.io/taints"
AVOID_PODS_ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_feature = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*").fullmatch


class NodeStatus(Status):
    def prepare(self, ctx: Context, new: Object, old: Object) -> None:
        if old["status"].get("config") is None:
            new["status"].pop("config", None)

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        return _validate_change(new, old)


class NodeStrategy(Strategy):
    namespace_selectable = False
    reset_fields = ("status",)
    metadata_rules = ("object",)
    field_labels: Mapping[str, str] = {"spec.unschedulable": "spec.unschedulable"}
    subresources: Mapping[str, Subresource] = {
        "status": NodeStatus(),
        "proxy": NodeProxy(),
    }

    def default(self, obj: Object) -> None:
        spec, status = obj["spec"], obj["status"]
        if cidr := spec.get("podCIDR"):
            if (spec.get("podCIDRs") or [""])[0] != cidr:
                spec["podCIDRs"] = [cidr]
        elif cidrs := spec.get("podCIDRs"):
            spec["podCIDR"] = cidrs[0]
        round_up_to_milli(status.get("capacity"))
        if status.get("allocatable") is None and status.get("capacity") is not None:
            status["allocatable"] = dict(status["capacity"])
        else:
            round_up_to_milli(status.get("allocatable"))

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        if old is None:
            new["spec"].pop("configSource", None)
            new["status"].pop("config", None)
        elif old["spec"].get("configSource") is None:
            new["spec"].pop("configSource", None)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        errors = _validate(new)
        if old is not None:
            errors += objectmeta.validate_update(new["metadata"], old["metadata"])
            errors += _validate_change(new, old)
        return errors

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        return _warnings(new)

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        return {"spec.unschedulable": "true" if obj["spec"].get("unschedulable") else "false"}


def validate_taints(taints: list[dict[str, Any]], path: str) -> Errors:
    errors: Errors = []
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(taints):
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        errors += validate_label_name(key, f"{path}[{i}].key")
        if messages := names.label_value(value):
            errors.append(invalid(f"{path}[{i}].value", value, ";".join(messages)))
        if not effect:
            errors.append(required(f"{path}[{i}].effect"))
        elif effect not in TAINT_EFFECTS:
            errors.append(not_supported(f"{path}[{i}].effect", effect, TAINT_EFFECTS))
        if (key, effect) in seen:
            error = duplicate(f"{path}[{i}]", internal_form("core.Taint", taint))
            errors.append(replace(error, body=f"{error.body}: taints must be unique by key and effect pair"))
        seen.add((key, effect))
    return errors


def _validate_annotations(annotations: dict[str, str]) -> Errors:
    """Validates the annotations for taints and preferAvoidPods, which preceded the fields."""
    errors: Errors = []
    path = "metadata.annotations"
    if text := annotations.get(TAINTS_ANNOTATION):
        taints, problem = _unmarshal(text, list)
        if problem:
            errors.append(invalid(path, TAINTS_ANNOTATION, problem))
        else:
            errors += validate_taints(taints, f"{path}.{TAINTS_ANNOTATION}")
    if text := annotations.get(AVOID_PODS_ANNOTATION):
        avoid, problem = _unmarshal(text, dict)
        if problem:
            errors.append(invalid(f"{path}.AvoidPods", AVOID_PODS_ANNOTATION, problem))
            return errors
        for i, entry in enumerate(avoid.get("preferAvoidPods") or ()):
            where = f"{path}.{AVOID_PODS_ANNOTATION}[{i}].PodSignature"
            controller = (entry.get("podSignature") or {}).get("podController")
            if controller is None:
                errors.append(required(where))
            elif not controller.get("controller"):
                detail = "must point to a controller"
                errors.append(invalid(f"{where}.PodController.Controller", False, detail))
    return errors


def _unmarshal(text: str, kind: type) -> tuple[Any, str]:
    """JSON value of an annotation, or an error message."""
    try:
        value = json.loads(text)
    except ValueError:
        return None, f"invalid character {text[:1]!r} looking for beginning of value"
    if value is None:
        return kind(), ""
    items = value if isinstance(value, list) else [value]
    if not isinstance(value, kind) or not all(isinstance(item, dict) for item in items):
        return None, f"json: cannot unmarshal {type(value).__name__} into Go value"
    return value, ""


def _validate(node: Object) -> Errors:
    errors = _validate_annotations(node["metadata"].get("annotations") or {})
    errors += validate_taints(node["spec"].get("taints") or [], "metadata.taints")
    errors += _validate_resources(node["status"])
    swap = ((node["status"].get("nodeInfo") or {}).get("swap") or {}).get("capacity", 1)
    if swap <= 0:
        errors.append(invalid("metadata.nodeSwapStatus.capacity", swap, "must be greater than zero"))
    errors += _validate_features(node["status"])
    cidrs = node["spec"].get("podCIDRs") or []
    for i, cidr in enumerate(cidrs):
        errors += validate_cidr(cidr, f"spec.podCIDRs[{i}]")
    if len(cidrs) > 1:
        networks = [parse_cidr(cidr) for cidr in cidrs]
        if None in networks:
            bad = networks.index(None)
            why = f"invalid CIDR[{bad}]: <nil> (invalid CIDR address: {cidrs[bad]})"
            detail = f"invalid PodCIDRs. failed to check with dual stack with error:{why}"
            errors.append(internal("spec.podCIDRs", detail))
        families = {network.version for network in networks if network is not None}
        if None in networks or len(families) < 2 or len(cidrs) > 2:
            detail = "may specify no more than one CIDR for each IP family"
            errors.append(invalid("spec.podCIDRs", cidrs, detail))
    return errors


def _validate_resources(status: dict[str, Any]) -> Errors:
    errors: Errors = []
    for field in ("capacity", "allocatable"):
        for name, amount in (status.get(field) or {}).items():
            errors += validate_quantity(name, amount, f"status.{field}.{name}")
    return errors


def _validate_features(status: dict[str, Any]) -> Errors:
    errors: Errors = []
    features = status.get("declaredFeatures") or []
    path = "status.declaredFeatures"
    for i, feature in enumerate(features):
        if len(feature) > 253 or not _feature(feature):
            errors.append(invalid(f"{path}[{i}]", feature, _feature_problem(feature)))
        if i + 1 < len(features):
            following = features[i + 1]
            if feature == following:
                errors.append(duplicate(f"{path}[{i + 1}]", following))
            elif feature > following:
                errors.append(invalid(f"{path}[{i + 1}]", following, "list must be sorted alphabetically"))
    return errors


def _feature_problem(feature: str) -> str:
    if len(feature) > 253:
        return f"invalid feature name {quoted(feature)}: must be no more than 253 characters"
    return (
        f"invalid feature name {quoted(feature)}: must start with an UpperCamelCase segment, with subsequent "
        "segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only "
        "alphanumeric characters and slashes"
    )


def _validate_change(new: Object, old: Object) -> Errors:
    errors = _validate_annotations(new["metadata"].get("annotations") or {})
    spec, before, status = new["spec"], old["spec"], new["status"]
    errors += _validate_resources(status)
    errors += _validate_features(status)
    addresses = [(a.get("type", ""), a.get("address", "")) for a in status.get("addresses") or ()]
    for i in repeats(addresses):
        value = {"Type": addresses[i][0], "Address": addresses[i][1]}
        errors.append(duplicate(f"status.addresses[{i}]", value))
    cidrs, old_cidrs = spec.get("podCIDRs") or [], before.get("podCIDRs") or []
    if old_cidrs:
        detail = 'node updates may not change podCIDR except from "" to valid'
        if len(cidrs) != len(old_cidrs):
            errors.append(forbidden("spec.podCIDRs", detail))
        else:
            pairs = zip(cidrs, old_cidrs, strict=True)
            errors += [forbidden("spec.podCIDRs", detail) for cidr, was in pairs if cidr != was]
    provider = before.get("providerID", "")
    if provider and provider != spec.get("providerID", ""):
        detail = 'node updates may not change providerID except from "" to valid'
        errors.append(forbidden("spec.providerID", detail))
    errors += validate_taints(spec.get("taints") or [], "metadata.taints")
    if spec.get("externalID", "") != before.get("externalID", ""):
        errors.append(forbidden("spec.externalID", "may not be updated"))
    return errors


def _warnings(node: Object) -> Iterable[str]:
    spec = node["spec"]
    if spec.get("configSource") is not None:
        yield "spec.configSource: the feature is removed"
    if spec.get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"
    for i, cidr in enumerate(spec.get("podCIDRs") or ()):
        yield from cidr_warnings(cidr, f"spec.podCIDRs[{i}]")


strategy = NodeStrategy()
