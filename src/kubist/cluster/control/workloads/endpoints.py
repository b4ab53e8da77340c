"""Endpoints and EndpointSlices of Services with a selector: addresses of the selected pods."""

from __future__ import annotations

from kubist.api.object_client import ObjectClient
from kubist.cluster.control.loop import Loop, entry_of
from kubist.cluster.control.workloads import endpointslice_plan
from kubist.cluster.control.workloads import pods as of_pods
from kubist.cluster.control.workloads.slice_set import MANAGED_BY, SERVICE, SliceSet, held_slices
from kubist.model.meta.object import Object
from kubist.model.meta.selectors import LabelSelector, label_selector
from kubist.model.meta.status import APIError
from kubist.storage.cache.cache import Change, Entry

HEADLESS = "service.kubernetes.io/headless"
MANAGER = "endpointslice-controller.k8s.io"
ENDPOINTS_MANAGED_BY = "endpoints.kubernetes.io/managed-by"
ENDPOINTS_MANAGER = "endpoint-controller"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"


class ServiceLoop(Loop):
    """Controller that computes something from the pods that a Service selects."""

    workers = 4

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        self._selectors: dict[str, dict[str, LabelSelector]] = {}
        """Selectors of Services by namespace and name."""

    def follow(self) -> None:
        self.watch("services", self._service_changed)
        self.watch("pods", self._pod_changed)

    def _service_changed(self, change: Change) -> None:
        entry = entry_of(change)
        selectors = self._selectors.setdefault(entry.namespace, {})
        selectors.pop(entry.name, None)
        if change.new is not None and (selector := self.client.parsed(entry)["spec"].get("selector")):
            selectors[entry.name] = label_selector({"matchLabels": selector})
        if not selectors:
            del self._selectors[entry.namespace]
        self.enqueue(change)

    def _pod_changed(self, change: Change) -> None:
        namespace = entry_of(change).namespace
        for name, selector in self._selectors.get(namespace, {}).items():
            if any(_selected(selector, version) for version in (change.old, change.new)):
                self.enqueue_soon((namespace, name), self.client.collection("pods"))

    def _selected_pods(self, service: Object) -> list[Object]:
        """Pods of a Service by name."""
        namespace, selector = service["metadata"]["namespace"], service["spec"]["selector"]
        matches = label_selector({"matchLabels": selector}).matches
        entries = self.client.labelled("pods", namespace)
        return [self.client.parsed(entry) for entry in entries if matches(entry.labels)]

    async def reconcile(self, key: tuple[str, str]) -> None:
        namespace, name = key
        service = self.client.get("services", name, namespace)
        if service is None:
            await self.remove(namespace, name)
        elif service["spec"].get("selector") and service["spec"].get("type") != "ExternalName":
            await self.write(service, self._selected_pods(service))

    async def remove(self, namespace: str, name: str) -> None:
        """Cleans up after a deleted Service."""

    async def write(self, service: Object, pods: list[Object]) -> None:
        """Writes the result for a Service and its pods."""


class ServiceEndpoints(ServiceLoop):
    name = "endpoints"
    component = "endpoint-controller"

    async def remove(self, namespace: str, name: str) -> None:
        endpoints = self.client.get("endpoints", name, namespace)
        labels = (endpoints or {"metadata": {}})["metadata"].get("labels") or {}
        if endpoints is not None and labels.get(ENDPOINTS_MANAGED_BY) == ENDPOINTS_MANAGER:
            await of_pods.delete(self.client, endpoints, "endpoints")

    async def write(self, service: Object, pods: list[Object]) -> None:
        metadata = service["metadata"]
        name, namespace = metadata["name"], metadata["namespace"]
        labels = {**(metadata.get("labels") or {}), ENDPOINTS_MANAGED_BY: ENDPOINTS_MANAGER}
        labels.pop(HEADLESS, None)
        if not has_address(service):
            labels[HEADLESS] = ""
        subsets, truncated = endpointslice_plan.truncate(endpointslice_plan.subsets_of(service, pods))

        def edit(endpoints: Object) -> Object:
            annotations = endpoints["metadata"].pop("annotations", None) or {}
            annotations.pop(OVER_CAPACITY, None)
            if truncated:
                annotations[OVER_CAPACITY] = "truncated"
            if annotations:
                endpoints["metadata"]["annotations"] = annotations
            endpoints["metadata"]["labels"] = labels
            endpoints.pop("subsets", None)
            return {**endpoints, "subsets": subsets} if subsets else endpoints

        endpoints = self.client.get("endpoints", name, namespace)
        try:
            if endpoints is None:
                await self.client.create("endpoints", edit({"metadata": {"name": name}}), namespace)
            else:
                await self.client.update("endpoints", name, namespace, edit)
        except APIError as error:
            if of_pods.is_namespace_terminating(error):
                return
            about = endpoints or {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": name}}
            about["metadata"]["namespace"] = namespace
            if endpoints is None:
                text = f"Failed to create endpoint for service {namespace}/{name}: {error}"
                self.events.emit(about, "Warning", "FailedToCreateEndpoint", text)
            else:
                text = f"Failed to update endpoint {namespace}/{name}: {error}"
                self.events.emit(about, "Warning", "FailedToUpdateEndpoint", text)
            raise


class ServiceSlices(ServiceLoop):
    name = "endpointslice"
    component = "endpoint-slice-controller"

    def follow(self) -> None:
        super().follow()
        self.watch("endpointslices", self._slice_changed, group="discovery.k8s.io")
        self.watch("nodes", self._node_changed)

    def _slice_changed(self, change: Change) -> None:
        """Queues the Service of a slice that was changed or deleted, possibly by somebody else."""
        labels = entry_of(change).labels
        if change.old is not None and change.old.labels.get(MANAGED_BY) == MANAGER and labels.get(SERVICE):
            slices = self.client.collection("endpointslices", group="discovery.k8s.io")
            self.enqueue_soon((change.old.namespace, labels[SERVICE]), slices)

    def _node_changed(self, change: Change) -> None:
        """Queues all Services when the zone of a node changes."""
        zones = {
            (version.labels.get(endpointslice_plan.ZONE) if version else None)
            for version in (change.old, change.new)
        }
        if len(zones) > 1:
            nodes = self.client.collection("nodes")
            for namespace, selectors in self._selectors.items():
                for name in selectors:
                    self.enqueue_soon((namespace, name), nodes)

    async def remove(self, namespace: str, name: str) -> None:
        """Does nothing: the garbage collector deletes the slices, because the Service owns them."""

    async def write(self, service: Object, pods: list[Object]) -> None:
        metadata = service["metadata"]
        labels = {
            key: value
            for key, value in (metadata.get("labels") or {}).items()
            if key not in (SERVICE, MANAGED_BY, HEADLESS)
        }
        labels |= {SERVICE: metadata["name"], MANAGED_BY: MANAGER}
        if not has_address(service):
            labels[HEADLESS] = ""
        groups = endpointslice_plan.slice_groups(service, pods, self._nodes(pods))
        types = endpointslice_plan.address_types(service)
        for endpoint_slice in held_slices(self.client, metadata["namespace"], metadata["name"], MANAGER):
            if endpoint_slice["addressType"] not in types:
                await of_pods.delete(self.client, endpoint_slice, "endpointslices", group="discovery.k8s.io")
        if "deletionTimestamp" not in metadata:
            slices = SliceSet(self.client, service, MANAGER, {"labels": labels})
            await slices.write(groups, placeholders=tuple(types))

    def _nodes(self, pods: list[Object]) -> dict[str, Object]:
        nodes = self.client.collection("nodes")
        by_name = {}
        for name in {pod["spec"].get("nodeName", "") for pod in pods}:
            entry = nodes.entries.get(f"{nodes.kind.prefix}{name}") if name else None
            if entry is not None:
                by_name[name] = self.client.parsed(entry)
        return by_name


def has_address(service: Object) -> bool:
    return service["spec"].get("clusterIP") not in ("None", "", None)


def _selected(selector: LabelSelector, entry: Entry | None) -> bool:
    return entry is not None and selector.matches(entry.labels)
