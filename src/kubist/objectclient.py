"""Client of the server's own objects, for kinds, admission and CRDs: implements `resources.context.Objects`.

Control loops use a subclass of it (`control/client.py`), which writes as a kube-controller-manager does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from kubist import request as requests
from kubist.http.messages import Request
from kubist.http.pool import Pool
from kubist.kinds.core import service_ports
from kubist.meta import status
from kubist.meta.object import Object
from kubist.meta.objectmeta import APISERVER_MANAGER
from kubist.objectstore.rangeallocation import RangeAllocation
from kubist.resources.context import Rules, Tokens, User
from kubist.resources.resource import Resource
from kubist.verbs import delete as delete_verb
from kubist.verbs import managed_fields, write_path
from kubist.verbs.call import Call
from kubist.verbs.options import delete_options
from kubist.verbs.services import Services

LOOPBACK = User("system:apiserver", groups=("system:masters", "system:authenticated"))


class ObjectClient:
    """Client of all objects of a server, for code inside it."""

    def __init__(self, api: Services) -> None:
        self._api = api
        self._registry = api.registry
        self.tokens: Tokens | None = None
        self.connections: Pool | None = None

    def get(self, resource: str, name: str, namespace: str = "", *, group: str = "") -> Object | None:
        return self._registry.get(resource, name, namespace, group=group)

    def list(self, resource: str, namespace: str | None = "", *, group: str = "") -> Iterator[Object]:
        return self._registry.list(resource, namespace, group=group)

    async def mutate(
        self,
        resource: str,
        name: str,
        namespace: str,
        change: Callable[[Object], Object | None],
        *,
        group: str = "",
    ) -> Object:
        return await self._registry.mutate(resource, name, namespace, change, group=group)

    def _call(self, verb: str, resource: str, group: str, namespace: str, name: str) -> Call:
        """Call for a request of the server itself."""
        api = self._api
        found = api.resources.stored(group, resource)
        if found is None:
            raise status.not_found(group, resource, name)
        info = requests.RequestInfo("", verb, True, found.group, found.version, namespace, resource, "", name)
        return Call(api, Request("", "", "", {}), info, found, LOOPBACK, {}, [], {})

    async def create(self, resource: str, obj: Object, namespace: str = "", *, group: str = "") -> Object:
        call = self._call("create", resource, group, namespace, obj["metadata"].get("name", ""))
        obj = {"kind": call.resource.kind, "apiVersion": call.resource.api_version, **obj}
        if call.resource.namespaced:
            obj["metadata"]["namespace"] = namespace
        call.resource.strategy.default(obj)
        call.context.field_manager = APISERVER_MANAGER
        managed_fields.track(call, obj, None, call.resource.strategy.reset_fields)
        outcome = await write_path.insert_object(call, obj)
        assert outcome.entry is not None
        return outcome.entry.object()

    async def delete(
        self, resource: str, name: str, namespace: str = "", *, group: str = "", **options: Any
    ) -> Object | None:
        call = self._call("delete", resource, group, namespace, name)
        entry = await self._registry.read(call.resource, namespace, name)
        if entry is None:
            raise call.not_found()
        gone, held = await delete_verb.remove(call, entry, delete_options(options, {}), admitted=True)
        return held.object() if held is not None else gone

    @functools.cached_property
    def node_ports(self) -> RangeAllocation:
        ports = service_ports.port_range(self._api.config)
        return RangeAllocation(
            self._registry.store,
            service_ports.KEY,
            ports,
            lambda: service_ports.in_use(self),
            reserved=service_ports.reserved(len(ports)),
        )

    async def catch_up(self) -> None:
        await self._registry.cache.catch_up()

    def find_kind(self, group: str, version: str, kind: str) -> Resource | None:
        served = self._api.resources.of(group, version)
        if served is None:
            return None
        return next((resource for resource in served.values() if resource.kind == kind), None)

    async def authenticate(
        self, token: str, audiences: tuple[str, ...]
    ) -> tuple[User, tuple[str, ...]] | str:
        return await self._api.authentication.review(token, audiences)

    async def rules_for(self, user: User, namespace: str) -> Rules:
        return self._api.authorization.rules(user, namespace)

    def granted(self, user: User, namespace: str) -> Rules:
        return self._api.authorization.rbac.rules(user, namespace)
