"""EndpointSlice mirroring: slices of Endpoints that users write for Services without a selector."""

from __future__ import annotations

import ipaddress

from kubist.cluster.control.loop import Loop, entry_of
from kubist.cluster.control.workloads import pods as of_pods
from kubist.cluster.control.workloads.endpointslice_plan import CAPACITY, Group
from kubist.cluster.control.workloads.slice_set import GROUP, MANAGED_BY, SERVICE, SliceSet, held_slices
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Change

MANAGER = "endpointslicemirroring-controller.k8s.io"
SKIP = "endpointslice.kubernetes.io/skip-mirror"
LEADER = "control-plane.alpha.kubernetes.io/leader"
NOT_COPIED = (
    "endpoints.kubernetes.io/last-change-trigger-time",
    "kubectl.kubernetes.io/last-applied-configuration",
)


class EndpointSliceMirroring(Loop):
    name = "endpointslicemirroring"
    component = "endpoint-slice-mirroring-controller"

    def follow(self) -> None:
        self.watch("endpoints", self.enqueue)
        self.watch("services", self._service_changed)
        self.watch("endpointslices", self._slice_changed, group=GROUP)

    def _service_changed(self, change: Change) -> None:
        """A Service matters if it comes, goes, or gets or loses its selector."""
        states = {
            version is not None and bool(version.object()["spec"].get("selector"))
            for version in (change.old, change.new)
        }
        if change.old is None or change.new is None or len(states) > 1:
            self.enqueue(change)

    def _slice_changed(self, change: Change) -> None:
        entry = entry_of(change)
        if change.old is not None and entry.labels.get(MANAGED_BY) == MANAGER and entry.labels.get(SERVICE):
            self.queue.add((entry.namespace, entry.labels[SERVICE]))

    async def reconcile(self, key: tuple[str, str]) -> None:
        namespace, name = key
        endpoints = self.client.get("endpoints", name, namespace)
        service = self.client.get("services", name, namespace)
        if (
            endpoints is None
            or service is None
            or service["spec"].get("selector")
            or not is_mirrored(endpoints)
        ):
            for endpoint_slice in held_slices(self.client, namespace, name, MANAGER):
                await of_pods.delete(self.client, endpoint_slice, "endpointslices", group=GROUP)
            return
        groups, invalid, skipped = mirrored_groups(endpoints)
        if invalid:
            text = f"Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices"
            self.events.emit(endpoints, "Warning", "InvalidIPAddress", text)
        if skipped > invalid:
            text = (
                f"A max of {CAPACITY} addresses can be mirrored to EndpointSlices per Endpoints subset. "
                f"{skipped} addresses were skipped"
            )
            self.events.emit(endpoints, "Warning", "TooManyAddressesToMirror", text)
        await SliceSet(self.client, endpoints, MANAGER, slice_metadata(endpoints)).write(groups)


def is_mirrored(endpoints: Object) -> bool:
    metadata = endpoints["metadata"]
    if (metadata.get("labels") or {}).get(SKIP) == "true":
        return False
    return LEADER not in (metadata.get("annotations") or {})


def slice_metadata(endpoints: Object) -> Object:
    """Labels and annotations of the slices."""
    metadata = endpoints["metadata"]
    labels = {**(metadata.get("labels") or {}), SERVICE: metadata["name"], MANAGED_BY: MANAGER}
    annotations = metadata.get("annotations") or {}
    kept = {key: value for key, value in annotations.items() if key not in NOT_COPIED}
    return {"labels": labels, "annotations": kept} if kept else {"labels": labels}


def mirrored_groups(endpoints: Object) -> tuple[list[Group], int, int]:
    """Endpoints of the slices by address type and ports, and the numbers of invalid and of skipped addresses."""
    groups: dict[tuple[str, bytes], Group] = {}
    invalid = skipped = 0
    for subset in endpoints.get("subsets") or ():
        ports = [
            {"name": "", "protocol": "TCP", **{part: port[part] for part in port}}
            for port in subset.get("ports") or ()
        ]
        added = 0
        for part, ready in (("addresses", True), ("notReadyAddresses", False)):
            for address in subset.get(part) or ():
                kind = _address_type(address.get("ip", ""))
                if added >= CAPACITY or not kind:
                    skipped += 1
                    invalid += added < CAPACITY
                    continue
                added += 1
                group = Group(kind, ports)
                groups.setdefault(group.key, group).endpoints.append(_endpoint(address, ready=ready))
    return list(groups.values()), invalid, skipped


def _address_type(ip: str) -> str:
    try:
        return f"IPv{ipaddress.ip_address(ip).version}"
    except ValueError:
        return ""


def _endpoint(address: Object, *, ready: bool) -> Object:
    endpoint: Object = {"addresses": [address["ip"]], "conditions": {"ready": ready}}
    for part in ("hostname", "targetRef", "nodeName"):
        if address.get(part):
            endpoint[part] = address[part]
    return endpoint
