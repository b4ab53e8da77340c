"""Applies manifests to a new cluster by server-side apply. They pass the same checks as a client's requests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from urllib.parse import quote

import orjson

from kubist.api.resources.resource import Resource, Resources
from kubist.base.http.messages import Request, Response
from kubist.model.meta import fields, status
from kubist.model.meta.object import Object
from kubist.server.clusters.spec import KIND
from kubist.server.server import Server
from kubist.testbench.control_api.field_types import GROUP

MANAGER = "kubist-clusters"
APPLY = "application/apply-patch+yaml"
CRD = "CustomResourceDefinition"
CRD_STEPS = 2000
CRD_STEP = 0.005
"""The wait for a CRD takes at most `CRD_STEPS * CRD_STEP` seconds."""


async def apply(server: Server, token: str, manifests: Sequence[Object]) -> None:
    """Applies manifests in order, as the user of the token. Waits for each CRD, because its objects may follow.
    Raises 422 that names the first manifest that was rejected."""
    for index, manifest in enumerate(manifests):
        try:
            await _apply(server, token, manifest)
        except status.APIError as error:
            label = f"{manifest.get('kind', '')} {_name(manifest)}".strip()
            problem = fields.invalid(f"manifests[{index}]", label, error.message)
            raise status.invalid(GROUP, KIND, "", [problem]) from None


async def _apply(server: Server, token: str, manifest: Object) -> None:
    resource = _resource(server.resources, manifest)
    headers = {"authorization": f"Bearer {token}", "content-type": APPLY, "accept": "application/json"}
    query = f"fieldManager={MANAGER}&force=true"
    answer = await server.application(
        Request("PATCH", _path(resource, manifest), query, headers, orjson.dumps(manifest))
    )
    body = answer.body if isinstance(answer, Response) else b""
    if answer.status >= 400:
        text = body if isinstance(body, bytes) else b"".join(body)
        raise status.bad_request(_message(text))
    if resource.kind == CRD:
        await _established(server, manifest)


def _message(body: bytes) -> str:
    try:
        return str(orjson.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")[:500]


def _name(manifest: Object) -> str:
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def _resource(resources: Resources, manifest: Object) -> Resource:
    version, kind = manifest.get("apiVersion"), manifest.get("kind")
    if not _name(manifest):
        raise status.bad_request("metadata.name is required")
    for resource in resources:
        if resource.api_version == version and resource.kind == kind:
            return resource
    raise status.bad_request(f"no resource has the apiVersion {version} and the kind {kind}")


def _path(resource: Resource, manifest: Object) -> str:
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.api_version}"
    if resource.namespaced:
        namespace = manifest["metadata"].get("namespace") or "default"
        root += f"/namespaces/{quote(str(namespace), safe='')}"
    return f"{root}/{resource.resource}/{quote(_name(manifest), safe='')}"


async def _established(server: Server, crd: Object) -> None:
    """Waits until the resource of a CRD is served."""
    name = _name(crd)
    for _ in range(CRD_STEPS):
        current = server.registry.get("customresourcedefinitions", name, group="apiextensions.k8s.io") or {}
        conditions = (current.get("status") or {}).get("conditions") or []
        if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
            return
        for condition in conditions:
            if condition["type"] == "NamesAccepted" and condition["status"] == "False":
                raise status.bad_request(f"{name} is not established: {condition.get('message', '')}")
        await asyncio.sleep(CRD_STEP)
    raise status.bad_request(f"{name} was not established in time")
