"""Old state from a running server: the objects that the manifests name, and the objects that rules depend on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar
from urllib.parse import quote

import orjson

from kubist.api.filters.kubeconfig import read_kubeconfig
from kubist.api.resources.resource import Resource, path_of
from kubist.base.http.client.calls import CallFailed, get
from kubist.base.http.client.pool import Pool
from kubist.model.meta.object import Object
from kubist.testing.offline import order
from kubist.testing.offline.findings import WARNING, Finding, Report
from kubist.testing.offline.manifests import Manifest
from kubist.testing.offline.server import OfflineServer
from kubist.testing.offline.state import State, without_webhook

CONCURRENT = 16
"""Maximum number of concurrent requests."""
PAGE = 50
"""Maximum number of objects per response."""
TIMEOUT = 30.0
_CRDS = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_CLASSES = (
    ("scheduling.k8s.io/v1", "PriorityClass"),
    ("node.k8s.io/v1", "RuntimeClass"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("networking.k8s.io/v1", "IngressClass"),
)
_IN_NAMESPACES = (("v1", "ServiceAccount"), ("v1", "LimitRange"))
_ROLES = (
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
)
_ROLES_IN_NAMESPACES = (
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
)

T = TypeVar("T")


class LiveServer:
    """Reads objects of the server of a kubeconfig. It never writes."""

    def __init__(self, path: str, context: str = "") -> None:
        self.path = path
        self._server = read_kubeconfig(path, context=context)
        self._pool = Pool()
        self._turns = asyncio.Semaphore(CONCURRENT)
        self.refused: dict[str, None] = {}
        """Messages of requests that the server refused."""

    async def close(self) -> None:
        await self._pool.close()

    async def get(self, path: str) -> Any:
        """JSON of a response; None for 404, and for 403, which is noted. Raises ValueError for other failures."""
        server = self._server
        async with self._turns:
            try:
                code, body = await get(
                    server.url.rstrip("/") + path,
                    context=server.context,
                    timeout=TIMEOUT,
                    server_hostname=server.server_name,
                    headers=server.headers,
                    pool=self._pool,
                    follows=False,
                )
            except CallFailed as error:
                raise ValueError(f"cannot read from the server of {self.path}: {error}") from None
        try:
            answer = orjson.loads(body)
        except orjson.JSONDecodeError:
            answer = {"message": body[:200].decode("utf-8", "replace").strip()}
        if code == 200:
            return answer
        message = str(answer.get("message") if isinstance(answer, dict) else "") or f"HTTP {code}"
        if code == 403:
            self.refused.setdefault(message)
        elif code != 404:
            raise ValueError(f"cannot read from the server of {self.path}: {path}: {message}")
        return None

    async def list(self, resource: Resource, namespace: str = "") -> list[Object]:
        """All objects of a resource, of one namespace or of all."""
        path = path_of(resource, namespace)
        if resource.namespaced and not namespace:
            path = path.replace("/namespaces//", "/", 1)
        items: list[Object] = []
        more = ""
        while True:
            page = await self.get(f"{path}?limit={PAGE}{more}")
            if not isinstance(page, dict):
                return items
            for item in page.get("items") or ():
                items.append({"apiVersion": resource.api_version, "kind": resource.kind, **item})
            token = (page.get("metadata") or {}).get("continue")
            if not token:
                return items
            more = f"&continue={quote(token)}"


class LiveState:
    """Copies objects of a running server to the offline server."""

    def __init__(self, live: LiveServer, server: OfflineServer, state: State, *, with_roles: bool) -> None:
        self._live = live
        self._server = server
        self._state = state
        self._with_roles = with_roles

    async def load(self, manifests: list[Manifest], namespace: str, report: Report) -> list[Object]:
        """Stores the objects, and returns the policies, which take effect later."""
        policies = await self._policies()
        parameters = order.parameter_kinds(policies)
        groups = {version.rpartition("/")[0] for version, _ in parameters}
        groups |= {manifest.api_version.rpartition("/")[0] for manifest in manifests}
        await self._load_crds(groups)
        named = {}
        used = {namespace}
        for manifest in manifests:
            kind = self._server.find(manifest.api_version, manifest.kind)
            if kind is None or not manifest.name:
                continue
            where = (manifest.namespace or namespace) if kind.namespaced else ""
            if kind.namespaced:
                used.add(where)
            elif manifest.kind == "Namespace":
                used.add(manifest.name)
            stored = self._stored(kind)
            named[stored.key(where, manifest.name)] = (stored, path_of(stored, where, manifest.name))
        spaces = self._kinds([("v1", "Namespace")])[0]
        for name in used:
            named[spaces.key("", name)] = (spaces, path_of(spaces, "", name))
        found_objects = await _all(self._live.get(path) for _, path in named.values())
        for (resource, _), obj in zip(named.values(), found_objects, strict=True):
            if isinstance(obj, dict) and isinstance(obj.get("metadata"), dict):
                await self._insert(resource, obj)
        await self._load_context(parameters, used)
        for message in self._live.refused:
            text = f"the server refused to show a part of its state, which is taken as empty: {message}"
            report.problems.append(Finding(WARNING, self._live.path, 1, "Forbidden", text))
        return policies

    async def _policies(self) -> list[Object]:
        kinds = [(f"{order.POLICY_GROUP}/v1", kind) for kind in sorted(order.POLICY_KINDS, key=len)]
        listed = await _all(self._live.list(resource) for resource in self._kinds(kinds))
        return [policy for policies in listed for policy in policies]

    async def _load_crds(self, groups: set[str]) -> None:
        crds = self._kinds([_CRDS])[0]
        for crd in await self._live.list(crds):
            if crd["spec"]["group"] in groups:
                await self._insert(crds, without_webhook(crd))
                await self._state.establish(crd["metadata"]["name"])

    async def _load_context(self, parameters: set[order.KindKey], namespaces: set[str]) -> None:
        kinds = [*_CLASSES, *parameters, *(_ROLES if self._with_roles else ())]
        inside = [*_IN_NAMESPACES, *(_ROLES_IN_NAMESPACES if self._with_roles else ())]
        lists = [(resource, "") for resource in self._kinds(kinds)]
        lists += [(resource, name) for resource in self._kinds(inside) for name in sorted(namespaces)]
        listed = await _all(self._live.list(resource, name) for resource, name in lists)
        for (resource, _), objects in zip(lists, listed, strict=True):
            for obj in objects:
                await self._insert(resource, obj)

    async def _insert(self, resource: Resource, obj: Object) -> None:
        await self._state.insert(resource, obj)

    def _kinds(self, kinds: Iterable[order.KindKey]) -> list[Resource]:
        resources = (self._server.find(version, kind) for version, kind in kinds)
        return [self._stored(resource) for resource in resources if resource is not None]

    def _stored(self, resource: Resource) -> Resource:
        """The resource in the version of stored objects, if clients can read it."""
        return self._server.find(resource.storage_version, resource.kind) or resource


async def _all(requests: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Results of concurrent requests. The first failure ends the others, so that none is open when it is reported."""
    tasks = [asyncio.ensure_future(request) for request in requests]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
