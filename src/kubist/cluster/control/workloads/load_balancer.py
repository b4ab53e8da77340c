"""Gives Services of type LoadBalancer an address, so that clients waiting for one proceed. No server listens there."""

from __future__ import annotations

import ipaddress

from kubist.cluster.control.loop import Loop
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Change

NETWORK = ipaddress.IPv4Network("198.51.100.0/24")
"""Addresses for documentation (TEST-NET-2, RFC 5737)."""


class LoadBalancers(Loop):
    name = "simulated-loadbalancer"
    component = "service-controller"

    def follow(self) -> None:
        self.watch("services", self._service_changed)

    def _service_changed(self, change: Change) -> None:
        if change.new is not None and b'"type":"LoadBalancer"' in change.new.tail:
            self.enqueue(change)

    async def reconcile(self, key: tuple[str, str]) -> None:
        namespace, name = key
        service = self.client.get("services", name, namespace)
        if service is None or service["spec"].get("type") != "LoadBalancer":
            return
        if service["spec"].get("loadBalancerClass") or _addresses(service):
            return
        self.events.emit(service, "Normal", "EnsuringLoadBalancer", "Ensuring load balancer")
        taken = {ip for obj in self.client.list("services", None) for ip in _addresses(obj)}
        address = next((str(ip) for ip in NETWORK.hosts() if str(ip) not in taken), str(NETWORK[-2]))

        def edit(obj: Object) -> Object:
            obj["status"]["loadBalancer"] = {"ingress": [{"ip": address, "ipMode": "VIP"}]}
            return obj

        await self.client.update("services", name, namespace, edit, subresource="status")
        self.events.emit(service, "Normal", "EnsuredLoadBalancer", "Ensured load balancer")


def _addresses(service: Object) -> list[str]:
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return [entry["ip"] for entry in ingress if entry.get("ip")]
