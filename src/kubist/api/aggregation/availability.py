"""Availability checks of backends: the Available condition of their APIServices.

A backend is checked when its APIService, Service or EndpointSlices change, and periodically.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import orjson

from kubist.api.aggregation.backend import Backend, netloc
from kubist.api.aggregation.identity import CHECKER, identity_headers
from kubist.base.http.client.calls import CallFailed, get
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.config import Config
    from kubist.api.resources.context import Objects


TIMEOUT_SECONDS = 5.0
SERVICE_NAME = "kubernetes.io/service-name"


class Finding(NamedTuple):
    """Result of a check. `document` is the APIResourceList in the backend's response."""

    status: str
    reason: str
    message: str
    document: Object | None = None


LOCAL = Finding("True", "Local", "Local APIServices are always available")


async def check_availability(backend: Backend, objects: Objects, config: Config) -> Finding:
    """Checks that the service exists, has ready endpoints and responds."""
    missing = _missing(backend, objects)
    if missing is not None:
        return missing
    try:
        host, port = backend.address(objects)
    except CallFailed as error:
        return Finding("False", "FailedDiscoveryCheck", str(error))
    url = f"https://{netloc(host, port)}{backend.path}"
    try:
        code, body = await get(
            url,
            context=await backend.context(config),
            timeout=TIMEOUT_SECONDS,
            server_hostname=backend.server_name,
            headers=dict(identity_headers(CHECKER)),
            pool=objects.connections,
            follows=False,
        )
    except (CallFailed, ValueError, OSError) as error:
        return _failed(url, str(error))
    if not 200 <= code < 300:
        return _failed(url, f"bad status from {url}: {code}")
    return Finding("True", "Passed", "all checks passed", _document(body))


def _failed(url: str, why: str) -> Finding:
    return Finding("False", "FailedDiscoveryCheck", f"failing or missing response from {url}: {why}")


def _document(body: bytes) -> Object | None:
    try:
        document = orjson.loads(body)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _missing(backend: Backend, objects: Objects) -> Finding | None:
    """Problem with the Service, its port or its endpoints; None if the backend can be called."""
    name, namespace = backend.service, backend.namespace
    where = f'service/{name} in "{namespace}"'
    service = objects.get("services", name, namespace)
    if service is None:
        return Finding("False", "ServiceNotFound", f"{where} is not present")
    spec = service.get("spec") or {}
    if spec.get("type", "ClusterIP") != "ClusterIP":
        return None
    port = next((item for item in spec.get("ports") or () if item.get("port") == backend.port), None)
    if port is None:
        return Finding("False", "ServicePortError", f"{where} is not listening on port {backend.port}")
    slices = [
        endpoint_slice
        for endpoint_slice in objects.list("endpointslices", namespace, group="discovery.k8s.io")
        if (endpoint_slice["metadata"].get("labels") or {}).get(SERVICE_NAME) == name
    ]
    if not slices:
        return Finding("False", "EndpointsNotFound", f"cannot find endpointslices for {where}")
    port_name = port.get("name", "")
    if not any(_reachable(endpoint_slice, port_name) for endpoint_slice in slices):
        why = f'endpointslices for {where} have no addresses with port name "{port_name}"'
        return Finding("False", "MissingEndpoints", why)
    return None


def _reachable(endpoint_slice: Object, port_name: str) -> bool:
    ready = any(
        (endpoint.get("conditions") or {}).get("ready", True)
        for endpoint in endpoint_slice.get("endpoints") or ()
    )
    return ready and any(
        port.get("name", "") == port_name and port.get("port") for port in endpoint_slice.get("ports") or ()
    )


def condition(obj: Object) -> Object:
    """Available condition of an APIService; empty if it has none."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((item for item in conditions if item.get("type") == "Available"), {})


def with_condition(obj: Object, finding: Finding, now: str) -> bool:
    """Sets the Available condition. Returns whether it changed."""
    conditions = obj.setdefault("status", {}).setdefault("conditions", [])
    current = next((condition for condition in conditions if condition.get("type") == "Available"), None)
    if current is None:
        current = {"type": "Available"}
        conditions.append(current)
    before = dict(current)
    if current.get("status") != finding.status:
        current |= {"status": finding.status, "lastTransitionTime": now}
    current |= {"reason": finding.reason, "message": finding.message}
    return current != before
