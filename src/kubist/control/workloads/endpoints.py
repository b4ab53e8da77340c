"""Endpoints and EndpointSlices of services with a selector: addresses of the selected pods."""

from __future__ import annotations

import functools

from kubist.control.loop import Loop, entry_of
from kubist.control.values import pod_ready
from kubist.control.workloads import pods as of_pods
from kubist.meta.object import Object
from kubist.meta.selectors import label_selector
from kubist.meta.status import APIError
from kubist.storage.cache import Change

SERVICE = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
MANAGER = "endpointslice-controller.k8s.io"
SLICE = 100
"""Maximum number of endpoints in one slice."""


class ServiceEndpoints(Loop):
    name = "endpointslice"
    workers = 4

    def follow(self) -> None:
        self.watch("services", self.enqueue)
        self.watch("pods", self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        entry = entry_of(change)
        for service in self.client.list("services", entry.namespace):
            selector = service["spec"].get("selector")
            if not selector:
                continue
            matches = label_selector({"matchLabels": selector}).matches
            if any(matches(version.labels) for version in (change.old, change.new) if version is not None):
                pods = self.client.collection("pods")
                self.enqueue_soon((entry.namespace, service["metadata"]["name"]), pods)

    async def reconcile(self, key: tuple[str, str]) -> None:
        namespace, name = key
        service = self.client.get("services", name, namespace)
        if service is None:
            await self._remove(namespace, name)
            return
        selector = service["spec"].get("selector")
        if not selector or service["spec"].get("type") == "ExternalName":
            return
        matches = label_selector({"matchLabels": selector}).matches
        entries = self.client.labelled("pods", namespace)
        pods = [self.client.parsed(entry) for entry in entries if matches(entry.labels)]
        pods = [pod for pod in pods if pod["status"].get("podIP") and pod["status"].get("phase") == "Running"]
        pods.sort(key=lambda pod: pod["metadata"]["name"])
        await self._endpoints(service, pods)
        await self._slices(service, pods)

    async def _remove(self, namespace: str, name: str) -> None:
        """Deletes the Endpoints of a deleted service. Its slices are garbage-collected, because the service
        owns them."""
        found = self.client.get("endpoints", name, namespace)
        managed = "endpoints.kubernetes.io/managed-by"
        if (
            found is not None
            and (found["metadata"].get("labels") or {}).get(managed) == "endpoint-controller"
        ):
            await of_pods.delete(self.client, found, "endpoints")

    async def _endpoints(self, service: Object, pods: list[Object]) -> None:
        metadata = service["metadata"]
        groups: dict[tuple[tuple[str, int, str], ...], dict[str, list[Object]]] = {}
        for pod in pods:
            if "deletionTimestamp" in pod["metadata"]:
                continue
            ports = tuple((p.get("name", ""), p["port"], p["protocol"]) for p in ports_of(service, pod))
            state = "addresses" if _ready(service, pod) else "notReadyAddresses"
            address = {
                "ip": pod["status"]["podIP"],
                "nodeName": pod["spec"]["nodeName"],
                "targetRef": _target(pod),
            }
            groups.setdefault(ports, {}).setdefault(state, []).append(address)
        subsets = [
            {**states, "ports": [_port(*port) for port in ports]} for ports, states in sorted(groups.items())
        ]
        labels = {
            **(metadata.get("labels") or {}),
            "endpoints.kubernetes.io/managed-by": "endpoint-controller",
        }

        def edit(held: Object) -> Object:
            held["metadata"]["labels"] = labels
            held.pop("subsets", None)
            return {**held, "subsets": subsets} if subsets else held

        if self.client.get("endpoints", metadata["name"], metadata["namespace"]) is None:
            new = {"metadata": {"name": metadata["name"], "labels": labels}, "subsets": subsets}
            await self._create("endpoints", new, metadata["namespace"])
        else:
            await self.client.update("endpoints", metadata["name"], metadata["namespace"], edit)

    async def _slices(self, service: Object, pods: list[Object]) -> None:
        metadata = service["metadata"]
        group = "discovery.k8s.io"
        held = [
            entry.object()
            for entry in self.client.labelled("endpointslices", metadata["namespace"], group=group)
            if entry.labels.get(SERVICE) == metadata["name"] and entry.labels.get(MANAGED_BY) == MANAGER
        ]
        endpoints = [_endpoint(service, pod) for pod in pods]
        ports = ports_of(service, pods[0]) if pods else []
        chunks = [endpoints[at : at + SLICE] for at in range(0, len(endpoints), SLICE)] or [[]]
        labels = {**(metadata.get("labels") or {}), SERVICE: metadata["name"], MANAGED_BY: MANAGER}
        if service["spec"].get("clusterIP") == "None":
            labels["service.kubernetes.io/headless"] = ""
        for index, chunk in enumerate(chunks):
            body: Object = {"endpoints": chunk, "ports": ports}
            if index >= len(held):
                new = {
                    "metadata": {
                        "generateName": f"{metadata['name']}-",
                        "labels": labels,
                        "ownerReferences": [of_pods.owner_reference(service)],
                    },
                    "addressType": "IPv4",
                    **body,
                }
                await self._create("endpointslices", new, metadata["namespace"], group)
                continue
            await self.client.update(
                "endpointslices",
                held[index]["metadata"]["name"],
                metadata["namespace"],
                functools.partial(_merged, labels, body),
                group=group,
            )
        for extra in held[len(chunks) :]:
            await of_pods.delete(self.client, extra, "endpointslices", group=group)

    async def _create(self, resource: str, new: Object, namespace: str, group: str = "") -> None:
        try:
            await self.client.create(resource, new, namespace, group=group)
        except APIError as error:
            if error.reason not in ("AlreadyExists", "NotFound") and error.code != 403:
                raise


def _merged(labels: Object, body: Object, found: Object) -> Object:
    found["metadata"]["labels"] = labels
    return {**found, **body}


def _ready(service: Object, pod: Object) -> bool:
    return bool(service["spec"].get("publishNotReadyAddresses")) or pod_ready(pod)


def _target(pod: Object) -> Object:
    metadata = pod["metadata"]
    return {
        "kind": "Pod",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


def _endpoint(service: Object, pod: Object) -> Object:
    terminating = "deletionTimestamp" in pod["metadata"]
    serving = pod_ready(pod)
    endpoint = {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {
            "ready": _ready(service, pod) and not terminating,
            "serving": serving,
            "terminating": terminating,
        },
        "nodeName": pod["spec"]["nodeName"],
        "targetRef": _target(pod),
    }
    if pod["spec"].get("subdomain") == service["metadata"]["name"] and pod["spec"].get("hostname"):
        endpoint["hostname"] = pod["spec"]["hostname"]
    return endpoint


def ports_of(service: Object, pod: Object) -> list[Object]:
    """Ports of the service on a pod. Named target ports are resolved in its containers."""
    ports = []
    for port in service["spec"].get("ports") or ():
        target = port.get("targetPort", port["port"])
        protocol = port.get("protocol", "TCP")
        if isinstance(target, str):
            target = next(
                (
                    held["containerPort"]
                    for container in pod["spec"]["containers"]
                    for held in container.get("ports") or ()
                    if held.get("name") == target and held.get("protocol", "TCP") == protocol
                ),
                None,
            )
            if target is None:
                continue
        found = {"name": port.get("name", ""), "port": target, "protocol": protocol}
        if port.get("appProtocol"):
            found["appProtocol"] = port["appProtocol"]
        ports.append(found)
    return ports


def _port(name: str, port: int, protocol: str) -> Object:
    return {**({"name": name} if name else {}), "port": port, "protocol": protocol}
