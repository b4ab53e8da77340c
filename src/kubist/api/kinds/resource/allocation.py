"""Status of a ResourceClaim: allocated devices, their consumers (reservedFor), and the drivers' device status."""

from __future__ import annotations

from kubist.api.kinds.core.podspec.affinity import validate_node_selector
from kubist.api.kinds.resource.claims import RequestNames, validate_request_ref, validate_request_refs
from kubist.api.kinds.resource.common import (
    each,
    validate_binding_conditions,
    validate_configuration,
    validate_label,
    validate_pool_name,
    validate_raw,
    validate_share_id,
)
from kubist.api.kinds.shared.ip import validate_interface_address
from kubist.api.kinds.shared.update import immutable
from kubist.api.kinds.storage.common import validate_driver_name
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors
from kubist.model.meta import fields, names
from kubist.model.meta.conditions import validate_conditions
from kubist.model.meta.object import Object

DeviceID = tuple[str, str, str, str]
_SOURCES = ("FromClaim", "FromClass")
_GROUP = "resource.k8s.io"
_NODE_NAME_KEY = "authentication.kubernetes.io/node-name"


def device_id(device: Object) -> DeviceID:
    share = device.get("shareID") or ""
    return device.get("driver", ""), device.get("pool", ""), device.get("device", ""), share


def allocated(status: Object) -> list[Object]:
    """Allocation results, one for each device."""
    return ((status.get("allocation") or {}).get("devices") or {}).get("results") or []


def drop_deallocated(status: Object, old: Object) -> None:
    """Removes the status of devices that are no longer allocated."""
    gone = {device_id(d) for d in allocated(old)} - {device_id(d) for d in allocated(status)}
    devices = [device for device in status.get("devices") or () if device_id(device) not in gone]
    if devices:
        status["devices"] = devices
    else:
        status.pop("devices", None)


def validate_status(status: Object, old: Object, known: RequestNames, *, deleted: bool) -> Errors:
    reserved = status.get("reservedFor") or []
    errors = each(
        reserved, 256, "status.reservedFor", _validate_consumer, lambda consumer: consumer.get("uid", "")
    )
    held = {device_id(device) for device in allocated(status)}
    errors += each(
        status.get("devices"),
        -1,
        "status.devices",
        lambda device, path: _validate_device(device, path, held),
        lambda device: "/".join(filter(None, device_id(device))),
    )
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
    return errors + _validate_allocation(allocation, known)


def _validate_consumer(consumer: Object, path: str) -> Errors:
    return [fields.required(f"{path}.{n}") for n in ("resource", "name", "uid") if not consumer.get(n)]


def _validate_allocation(allocation: Object, known: RequestNames) -> Errors:
    path = "status.allocation"
    devices = allocation.get("devices") or {}

    def result(value: Object, place: str) -> Errors:
        errors = validate_request_ref(value.get("request", ""), f"{place}.request", known)
        errors += _validate_ids(value, place)
        errors += validate_binding_conditions(value, place)
        return errors + validate_share_id(value.get("shareID"), f"{place}.shareID")

    def configuration(value: Object, place: str) -> Errors:
        source = value.get("source", "")
        errors = []
        if not source:
            errors.append(fields.required(f"{place}.source"))
        elif source not in _SOURCES:
            errors.append(fields.not_supported(f"{place}.source", source, _SOURCES))
        errors += validate_request_refs(value, place, known)
        return errors + validate_configuration(value, place)

    errors = each(devices.get("results"), 32, f"{path}.devices.results", result)
    errors += each(devices.get("config"), 64, f"{path}.devices.config", configuration)
    if allocation.get("nodeSelector") is not None:
        errors += validate_node_selector(allocation["nodeSelector"], f"{path}.nodeSelector")
    return errors


def _validate_ids(device: Object, path: str) -> Errors:
    errors = validate_driver_name(device.get("driver", ""), f"{path}.driver")
    errors += validate_pool_name(device.get("pool", ""), f"{path}.pool")
    return errors + validate_label(device.get("device", ""), f"{path}.device")


def _validate_device(device: Object, path: str, held: set[DeviceID]) -> Errors:
    errors = _validate_ids(device, path) + validate_share_id(device.get("shareID"), f"{path}.shareID")
    if device_id(device) not in held:
        shown = dict(zip(("Driver", "Pool", "Device", "ShareID"), device_id(device), strict=True))
        errors.append(fields.invalid(path, shown, "must be an allocated device in the claim"))
    conditions = device.get("conditions") or []
    if len(conditions) > 8:
        errors.append(fields.too_many(f"{path}.conditions", len(conditions), 8))
    errors += validate_conditions(conditions, f"{path}.conditions")
    if device.get("data") is not None:
        errors += validate_raw(device["data"], f"{path}.data")
    network = device.get("networkData") or {}
    for name, limit in (("interfaceName", 256), ("hardwareAddress", 128)):
        if len(network.get(name, "").encode()) > limit:
            errors.append(fields.too_long(f"{path}.networkData.{name}", limit))
    return errors + each(
        network.get("ips"), 16, f"{path}.networkData.ips", validate_interface_address, lambda ip: ip
    )


async def access_errors(ctx: Context, status: Object, old: Object) -> Errors:
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
    before = {device_id(device): device for device in old.get("devices") or ()}
    after = {device_id(device): device for device in status.get("devices") or ()}
    return sorted({key[0] for key in {*before, *after} if before.get(key) != after.get(key)})


def _on_node(ctx: Context, allocation: Object) -> bool:
    """Whether the user is a service account of a pod on the node that the devices belong to."""
    match allocation.get("nodeSelector"):
        case {"nodeSelectorTerms": [{"matchFields": [field], **rest}]} if not rest.get("matchExpressions"):
            wanted = {"key": "metadata.name", "operator": "In", "values": field.get("values")}
            node = (field.get("values") or [""])[0] if field == wanted else ""
        case _:
            return False
    named = dict(ctx.user.extra).get(_NODE_NAME_KEY, ())
    if not ctx.user.name.startswith("system:serviceaccount:") or len(field.get("values") or ()) != 1:
        return False
    return named == (node,) and not names.dns_subdomain(node)
