"""ResourceClaim: a request for devices, immutable after creation. Its status has the allocated devices, their
consumers (reservedFor), and the drivers' device status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kubist.api.kinds.core.podspec.affinity import validate_node_selector
from kubist.api.kinds.resource.claims import (
    RequestNames,
    admin_access_error,
    default_claim,
    default_tolerations,
    request_names,
    request_ref,
    request_refs,
    validate_admin_request,
    validate_claim,
)
from kubist.api.kinds.resource.common import (
    BINDING_CONDITIONS,
    CONFIGURATION,
    driver_name,
    pool_name,
    raw,
    share_id,
)
from kubist.api.kinds.shared.ip import validate_interface_address
from kubist.api.kinds.shared.rules import (
    Rule,
    field,
    items,
    label,
    max_bytes,
    nullable,
    one_of,
    required,
    struct,
)
from kubist.api.kinds.shared.update import StatusOnly, immutable
from kubist.api.resources.allocations import Allocations
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy, Subresource
from kubist.model.meta import fields, names, objectmeta, status
from kubist.model.meta.conditions import validate_conditions
from kubist.model.meta.object import Object

_DeviceID = tuple[str, str, str, str]
_GROUP = "resource.k8s.io"
_NODE_NAME_KEY = "authentication.kubernetes.io/node-name"


class ResourceClaimStatus(StatusOnly):
    metadata_rules = ()

    def prepare(self, ctx: Context, new: Object, old: Object) -> None:
        if new.get("status"):
            _drop_deallocated(new["status"], old.get("status") or {})

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        after, before = new.get("status") or {}, old.get("status") or {}
        errors = _validate_admin_results(ctx, new, after, before)
        errors += objectmeta.validate_update(new["metadata"], old["metadata"])
        return errors + _validate_status(
            after, before, request_names(new["spec"]), deleted="deletionTimestamp" in new["metadata"]
        )

    async def before_write(self, ctx: Context, new: Object, old: Object, allocations: Allocations) -> None:
        errors = await _access_errors(ctx, new.get("status") or {}, old.get("status") or {})
        if errors:
            raise status.invalid("resource.k8s.io", "ResourceClaim", new["metadata"]["name"], errors)


def _validate_admin_results(ctx: Context, claim: Object, after: Object, before: Object) -> Errors:
    if any(result.get("adminAccess") for result in _allocated(before)):
        return []
    for index, result in enumerate(_allocated(after)):
        if result.get("adminAccess"):
            path = f"status.allocation.devices.results[{index}].adminAccess"
            return admin_access_error(ctx, claim["metadata"]["namespace"], path)
    return []


class ResourceClaimStrategy(Strategy):
    returns_deleted = True
    lenient_metadata = True
    reset_fields = ("status",)
    first_status: ClassVar = {}
    metadata_rules = ("object", "update")
    subresources: Mapping[str, Subresource] = {"status": ResourceClaimStatus()}

    def default(self, obj: Object) -> None:
        default_claim(obj.get("spec") or {})
        for result in _allocated(obj.get("status") or {}):
            default_tolerations(result)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        if old is not None:
            return immutable(new["spec"], old["spec"], "spec", "resource.ResourceClaimSpec")
        metadata = new["metadata"]
        errors = validate_admin_request(ctx, new["spec"], metadata.get("namespace", ""))
        errors += objectmeta.validate_create(metadata, namespaced=True, validate_name=self.validate_name)
        return errors + validate_claim(new["spec"], "spec")


def _device_id(device: Object) -> _DeviceID:
    share = device.get("shareID") or ""
    return device.get("driver", ""), device.get("pool", ""), device.get("device", ""), share


def _allocated(status: Object) -> list[Object]:
    """Allocation results, one for each device."""
    return ((status.get("allocation") or {}).get("devices") or {}).get("results") or []


def _drop_deallocated(status: Object, old: Object) -> None:
    """Removes the status of devices that are no longer allocated."""
    gone = {_device_id(d) for d in _allocated(old)} - {_device_id(d) for d in _allocated(status)}
    devices = [device for device in status.get("devices") or () if _device_id(device) not in gone]
    if devices:
        status["devices"] = devices
    else:
        status.pop("devices", None)


def _validate_status(status: Object, old: Object, known: RequestNames, *, deleted: bool) -> Errors:
    reserved = status.get("reservedFor") or []
    errors = _status_rules(status)(status, "status")
    allocation, before = status.get("allocation"), old.get("allocation")
    if reserved and allocation is None:
        why = "may not be specified when `allocated` is not set"
        errors.append(fields.forbidden("status.reservedFor", why))
    elif deleted and any(consumer not in (old.get("reservedFor") or ()) for consumer in reserved):
        why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        errors.append(fields.forbidden("status.reservedFor", why))
    if allocation is None:
        return errors
    if before is not None:
        return errors + immutable(allocation, before, "status.allocation", "*resource.AllocationResult")
    return errors + _allocation_rules(known)(allocation, "status.allocation")


_CONSUMER = struct(field("resource", required), field("name", required), field("uid", required))
_DEVICE_ID = struct(field("driver", driver_name), field("pool", pool_name), field("device", label))


def _status_rules(status: Object) -> Rule:
    known = {_device_id(device) for device in _allocated(status)}

    def validate_id(device: Object, path: str) -> Errors:
        if _device_id(device) in known:
            return []
        identity = dict(zip(("Driver", "Pool", "Device", "ShareID"), _device_id(device), strict=True))
        return [fields.invalid(path, identity, "must be an allocated device in the claim")]

    return struct(
        items("reservedFor", _CONSUMER, most=256, unique="uid"),
        items(
            "devices",
            _DEVICE_ID,
            field("shareID", share_id),
            validate_id,
            field("conditions", _validate_conditions),
            field("data", nullable, raw),
            field("networkData", nullable, _NETWORK_DATA),
            unique=lambda device: "/".join(filter(None, _device_id(device))),
        ),
    )


def _validate_conditions(conditions: list[Object] | None, path: str) -> Errors:
    conditions = conditions or []
    errors = [fields.too_many(path, len(conditions), 8)] if len(conditions) > 8 else []
    return errors + validate_conditions(conditions, path)


_NETWORK_DATA = struct(
    field("interfaceName", max_bytes(256)),
    field("hardwareAddress", max_bytes(128)),
    items("ips", validate_interface_address, most=16, unique=str),
)


def _allocation_rules(known: RequestNames) -> Rule:
    results = items(
        "results",
        field("request", request_ref(known)),
        _DEVICE_ID,
        BINDING_CONDITIONS,
        field("shareID", share_id),
        most=32,
    )
    configuration = items(
        "config",
        field("source", required, one_of("FromClaim", "FromClass")),
        request_refs(known),
        CONFIGURATION,
        most=64,
    )
    return struct(
        field("devices", nullable, results, configuration),
        field("nodeSelector", nullable, validate_node_selector),
    )


async def _access_errors(ctx: Context, status: Object, old: Object) -> Errors:
    """Errors for status fields that the user may not change: allocation needs `binding` permission, devices
    `driver`."""
    errors = []
    if any(status.get(name) != old.get(name) for name in ("allocation", "reservedFor")):
        allowed, reason = await ctx.authorize(
            ctx.verb, group=_GROUP, resource="resourceclaims", subresource="binding", user=ctx.user
        )
        if not allowed:
            why = (
                "changing status.allocation or status.reservedFor requires "
                f'resource="resourceclaims/binding", verb="{ctx.verb}" permission: {reason}'
            )
            errors.append(fields.forbidden("status.allocation", why))
    if status.get("allocation") is None:
        return errors
    verbs = [f"arbitrary-node:{ctx.verb}"]
    if _on_node(ctx, status["allocation"]):
        verbs.insert(0, f"associated-node:{ctx.verb}")
    for driver in _changed_drivers(status, old):
        answers = [
            await ctx.authorize(
                verb,
                group=_GROUP,
                resource="resourceclaims",
                subresource="driver",
                namespace=ctx.namespace,
                name=driver,
                user=ctx.user,
            )
            for verb in verbs
        ]
        if not any(allowed for allowed, _ in answers):
            why = (
                'changing status.devices requires resource="resourceclaims/driver", '
                f'verb="[{" ".join(verbs)}]" permission: {answers[0][1]}'
            )
            errors.append(fields.forbidden("status.devices", why))
    return errors


def _changed_drivers(status: Object, old: Object) -> list[str]:
    before = {_device_id(device): device for device in old.get("devices") or ()}
    after = {_device_id(device): device for device in status.get("devices") or ()}
    return sorted({key[0] for key in {*before, *after} if before.get(key) != after.get(key)})


def _on_node(ctx: Context, allocation: Object) -> bool:
    """Whether the user is a service account of a pod on the node that the devices belong to."""
    match allocation.get("nodeSelector"):
        case {"nodeSelectorTerms": [{"matchFields": [field], **rest}]} if not rest.get("matchExpressions"):
            by_name = {"key": "metadata.name", "operator": "In", "values": field.get("values")}
            node = (field.get("values") or [""])[0] if field == by_name else ""
        case _:
            return False
    nodes = dict(ctx.user.extra).get(_NODE_NAME_KEY, ())
    if not ctx.user.name.startswith("system:serviceaccount:") or len(field.get("values") or ()) != 1:
        return False
    return nodes == (node,) and not names.dns_subdomain(node)


strategy = ResourceClaimStrategy()
