"""Pod `/status`: the kubelet's report. Labels, annotations and finalizers may change this way too."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kubist.api.kinds.core.pod_update import validate_annotations
from kubist.api.kinds.core.pod_validation import validate_with_exceptions
from kubist.api.kinds.core.podspec import drop_disabled_status_fields
from kubist.api.kinds.core.podspec.options import Options
from kubist.api.kinds.core.podspec.restarts import may_restart_all, should_restart
from kubist.api.kinds.core.podspec.security import validate_id
from kubist.api.kinds.shared.ip import ip_warnings, is_dual_stack, parse_ip, validate_ip
from kubist.api.kinds.shared.update import immutable
from kubist.api.resources.strategy import Errors, Update
from kubist.model.meta import names, objectmeta
from kubist.model.meta.fields import (
    duplicate,
    forbidden,
    internal,
    invalid,
    not_supported,
    required,
    too_long,
)
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_NON_NEGATIVE = "must be a non-negative integer"
_HEALTH = ("Healthy", "Unhealthy", "Unknown")
_MAX_HEALTH_MESSAGE = 1024
_STATUSES = {
    "containerStatuses": "containers",
    "initContainerStatuses": "initContainers",
    "ephemeralContainerStatuses": "ephemeralContainers",
}


class PodStatus(Update):
    reset_fields = (
        "spec",
        "metadata.deletionTimestamp",
        "metadata.ownerReferences",
    )
    metadata_rules = ()

    def prepare(self, ctx: Context, new: Object, old: Object) -> None:
        status, before = new.setdefault("status", {}), old.get("status") or {}
        if not status.get("qosClass") and "qosClass" in before:
            status["qosClass"] = before["qosClass"]
        _keep_observed_generations(status, before)
        drop_disabled_status_fields(status, before)

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        return validate_with_exceptions(_validate, new, old, allow_privileged=ctx.config.allow_privileged)

    def warnings(self, ctx: Context, new: Object, old: Object) -> Iterable[str]:
        for field in ("podIPs", "hostIPs"):
            for index, address in enumerate(new["status"].get(field) or ()):
                yield from ip_warnings(address.get("ip", ""), f"status.{field}[{index}].ip")


def _keep_observed_generations(status: Object, old: Object) -> None:
    """Keeps observedGeneration values that the update omits, because older kubelets do not know the field."""
    if not status.get("observedGeneration") and old.get("observedGeneration"):
        status["observedGeneration"] = old["observedGeneration"]
    before: dict[str, deque[int]] = {}
    for condition in old.get("conditions") or ():
        before.setdefault(condition.get("type", ""), deque()).append(condition.get("observedGeneration", 0))
    for condition in status.get("conditions") or ():
        generations = before.get(condition.get("type", ""))
        generation = generations.popleft() if generations else 0
        if generation and not condition.get("observedGeneration"):
            condition["observedGeneration"] = generation


def _validate(new: Object, old: Object, options: Options) -> Errors:
    spec, status, before = new["spec"], new["status"], old.get("status") or {}
    errors = objectmeta.validate_update(new["metadata"], old["metadata"])
    errors += validate_annotations(new, old, options)
    errors += _conditions(status.get("conditions") or ())
    errors += _nomination(status, before, spec)
    if status.get("observedGeneration", 0) < 0:
        errors.append(invalid("status.observedGeneration", status["observedGeneration"], _NON_NEGATIVE))
    errors += immutable(status.get("qosClass", ""), before.get("qosClass", ""), "status.qosClass")
    errors += _transitions(status, before, spec)
    errors += _claims(status, spec)
    errors += _addresses(status, before, "podIPs")
    if status.get("hostIPs"):
        if status.get("hostIP", "") != status["hostIPs"][0].get("ip", ""):
            value = status["hostIPs"][0].get("ip", "")
            errors.append(invalid("status.hostIPs[0].ip", value, "must be equal to `hostIP`"))
        errors += _addresses(status, before, "hostIPs")
    for field in _STATUSES:
        errors += _users(
            status.get(field) or (), (spec.get("os") or {}).get("name", "linux"), f"status.{field}"
        )
    for field, containers in _STATUSES.items():
        errors += _health(status.get(field) or (), spec.get(containers) or (), f"status.{field}")
    return errors


def _conditions(conditions: Iterable[Object]) -> Errors:
    errors: Errors = []
    for index, condition in enumerate(conditions):
        path = f"status.conditions[{index}]"
        generation, kind = condition.get("observedGeneration", 0), condition.get("type", "")
        if generation < 0:
            errors.append(invalid(f"{path}.observedGeneration", generation, _NON_NEGATIVE))
        if kind not in _SYSTEM_CONDITIONS:
            errors += [invalid(f"{path}.Type", kind, problem) for problem in names.qualified_name(kind)]
    return errors


def _nomination(status: Object, old: Object, spec: Object) -> Errors:
    nominated = status.get("nominatedNodeName", "")
    if not nominated or nominated == old.get("nominatedNodeName", ""):
        return []
    path = "status.nominatedNodeName"
    errors = [invalid(path, nominated, problem) for problem in names.dns_subdomain(nominated)]
    if spec.get("nodeName"):
        errors.append(forbidden(path, "may not be set on pods that are already bound to a node"))
    return errors


def _transitions(status: Object, old: Object, spec: Object) -> Errors:
    """Rejects a terminated container that is no longer terminated, unless its restart policy restarts it."""
    errors: Errors = []
    for field, containers in _STATUSES.items():
        ephemeral = field == "ephemeralContainerStatuses"
        if not ephemeral and may_restart_all(spec):
            continue
        now = {entry.get("name", ""): entry for entry in reversed(status.get(field) or ())}
        by_name = {container.get("name", ""): container for container in reversed(spec.get(containers) or ())}
        for index, entry in enumerate(old.get(field) or ()):
            ended = (entry.get("state") or {}).get("terminated")
            current = now.get(entry.get("name", ""))
            if ended is None or current is None or "terminated" in (current.get("state") or {}):
                continue
            container = by_name.get(entry.get("name", ""))
            if (
                ephemeral
                or container is None
                or not should_restart(container, spec, ended.get("exitCode", 0))
            ):
                why = "may not be transitioned to non-terminated state"
                errors.append(forbidden(f"status.{field}[{index}].state", why))
    return errors


def _claims(status: Object, spec: Object) -> Errors:
    errors: Errors = []
    known = {claim.get("name", "") for claim in spec.get("resourceClaims") or ()}
    seen: set[str] = set()
    for index, claim in enumerate(status.get("resourceClaimStatuses") or ()):
        path = f"status.resourceClaimStatuses[{index}]"
        name, generated = claim.get("name", ""), claim.get("resourceClaimName")
        if name not in known:
            why = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(invalid(f"{path}.name", name, why))
        if name in seen:
            errors.append(duplicate(f"{path}.name", name))
        seen.add(name)
        if generated is not None:
            where = f"{path}.resourceClaimName"
            errors += [invalid(where, generated, problem) for problem in names.dns_subdomain(generated)]
    if "extendedResourceClaimStatus" in status:
        errors += _extended_claim(status["extendedResourceClaimStatus"], spec)
    return errors


def _extended_claim(status: Object, spec: Object) -> Errors:
    """Validates the mapping of extended resources to a ResourceClaim that the scheduler created."""
    path = "status.extendedResourceClaimStatus"
    errors: Errors = []
    mappings = status.get("requestMappings") or []
    if not mappings:
        errors.append(required(f"{path}.requestMappings", "at least one request mapping is required"))
    containers = {c.get("name", ""): c for f in ("initContainers", "containers") for c in spec.get(f) or ()}
    seen: set[tuple[str, ...]] = set()
    for index, mapping in enumerate(mappings):
        where = f"{path}.requestMappings[{index}]"
        parts = {f: mapping.get(f, "") for f in ("containerName", "resourceName", "requestName")}
        container, resource = containers.get(parts["containerName"]), parts["resourceName"]
        if container is None:
            why = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            errors.append(invalid(f"{where}.containerName", parts["containerName"], why))
        elif resource not in ((container.get("resources") or {}).get("requests") or {}):
            why = (
                "must match the extended resource name of an entry in spec.initContainers.resources.requests "
                "or spec.containers.resources.requests"
            )
            errors.append(invalid(f"{where}.resourceName", resource, why))
        request = parts["requestName"]
        errors += [invalid(f"{path}.requestName", request, m) for m in names.dns_label(request)]
        if tuple(parts.values()) in seen:
            errors += [duplicate(f"{where}.{field}", value) for field, value in parts.items()]
        seen.add(tuple(parts.values()))
    name = status.get("resourceClaimName", "")
    if not name:
        return [*errors, required(f"{path}.resourceClaimName")]
    return errors + [invalid(f"{path}.resourceClaimName", name, m) for m in names.dns_subdomain(name)]


def _addresses(status: Object, old: Object, field: str) -> Errors:
    """Validates addresses: at most one of each IP family. Stored addresses may keep an invalid form."""
    addresses = [address.get("ip", "") for address in status.get(field) or ()]
    before = {address.get("ip", "") for address in old.get(field) or ()}
    errors: Errors = []
    for index, address in enumerate(addresses):
        errors += validate_ip(address, f"status.{field}[{index}]", before)
    if len(addresses) < 2:
        return errors
    wrong = next((i for i, address in enumerate(addresses) if parse_ip(address) is None), None)
    if wrong is not None:
        why = f"failed to check for dual stack with error:invalid IP[{wrong}]: {addresses[wrong]}"
        errors.append(internal(f"status.{field}", why))
    if wrong is not None or len(addresses) > 2 or not is_dual_stack(addresses):
        why = "may specify no more than one IP for each IP family"
        errors.append(invalid(f"status.{field}", [{"IP": address} for address in addresses], why))
    return errors


def _users(statuses: Iterable[Object], os: str, path: str) -> Errors:
    errors: Errors = []
    for index, entry in enumerate(statuses):
        user = (entry.get("user") or {}).get("linux")
        if user is None:
            continue
        where = f"{path}[{index}].user.linux"
        if os == "windows":
            errors.append(forbidden(where, "cannot be set for a windows pod"))
        elif os == "linux":
            errors += validate_id(user.get("uid", 0), f"{where}.uid")
            errors += validate_id(user.get("gid", 0), f"{where}.gid")
            for position, group in enumerate(user.get("supplementalGroups") or ()):
                errors += validate_id(group, f"{where}.supplementalGroups[{position}]")
    return errors


def _health(statuses: Iterable[Object], containers: Iterable[Object], path: str) -> Errors:
    """Validates the health of devices in container statuses. Ephemeral containers must not have any."""
    errors: Errors = []
    by_name = {container.get("name", ""): container for container in containers}
    for index, entry in enumerate(statuses):
        where = f"{path}[{index}].allocatedResourcesStatus"
        allocated = entry.get("allocatedResourcesStatus") or ()
        if allocated and path == "status.ephemeralContainerStatuses":
            errors.append(forbidden(where, "must not be specified in container status"))
            continue
        container = by_name.get(entry.get("name", ""))
        resources = (container or {}).get("resources") or {}
        claims = _claim_names(resources)
        for position, resource in enumerate(allocated):
            name = resource.get("name", "")
            if container is not None:
                errors += _allocated_name(name, resources, claims, f"{where}[{position}].name")
            errors += _devices(resource.get("resources") or (), f"{where}[{position}].resources")
    return errors


def _claim_names(resources: dict[str, Any]) -> set[str]:
    """Claims of a container in the form of allocatedResourcesStatus names: `claim:<name>` or
    `claim:<name>/<request>`."""
    return {
        f"claim:{claim.get('name', '')}" + (f"/{claim['request']}" if claim.get("request") else "")
        for claim in resources.get("claims") or ()
    }


def _allocated_name(name: str, resources: dict[str, Any], claims: set[str], path: str) -> Errors:
    if name.startswith("claim:"):
        why = (
            "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or "
            "'claim:<claimName>' if request is empty"
        )
        return [] if name in claims else [invalid(path, name, why)]
    if name in (resources.get("requests") or {}):
        return []
    return [invalid(path, name, "must match one of the container's resource requests")]


def _devices(devices: Iterable[Object], path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, device in enumerate(devices):
        health, message, identity = (
            device.get("health", ""),
            device.get("message"),
            device.get("resourceID", ""),
        )
        if health not in _HEALTH:
            errors.append(not_supported(f"{path}[{index}].health", health, _HEALTH))
        if message is not None:
            if not message:
                errors.append(required(f"{path}[{index}].message", "must be non-empty if specified"))
            elif len(message.encode()) > _MAX_HEALTH_MESSAGE:
                errors.append(too_long(f"{path}[{index}].message", _MAX_HEALTH_MESSAGE))
        if identity in seen:
            errors.append(duplicate(f"{path}[{index}].resourceID", identity))
        seen.add(identity)
    return errors
