"""Client of the server's own objects, for kinds, admission, CRDs and control loops: reads from the cache, writes
through the verbs. Implements `resources.context.Objects`.

It writes as the API server itself, without admission. For control loops it writes as kube-controller-manager.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import orjson

from kubist.api.filters.authorization.query import attributes
from kubist.api.kinds.core import service_ports
from kubist.api.object_store.range_allocation import RangeAllocation
from kubist.api.request import RequestInfo
from kubist.api.resources.context import Rules, Tokens, User
from kubist.api.resources.resource import Resource
from kubist.api.resources.strategy import Update
from kubist.api.verbs import managed_fields, write_path
from kubist.api.verbs.bodies import body
from kubist.api.verbs.delete import delete_object
from kubist.api.verbs.options import delete_options
from kubist.api.verbs.patch import APPLY, patch
from kubist.api.verbs.resource_request import ResourceRequest, Services
from kubist.api.verbs.storage_version import decode_entry, is_converted, to_request_version
from kubist.base.http.client.pool import Pool
from kubist.base.http.messages import Request
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.model.meta.objectmeta import APISERVER_MANAGER
from kubist.storage.cache.cache import Collection, Entry

Edit = Callable[[Object], Object | None]
"""Changes an object in place and returns it. None: no change."""
EntryList = list[Entry]
State = TypeVar("State")

RETRIES = 10
PARSED = 20_000
"""Maximum number of parsed objects that are kept."""


class Actor(NamedTuple):
    """User and field manager of the client's writes, and whether they go through admission."""

    user: User
    field_manager: str
    admission: bool


_MASTERS = ("system:masters", "system:authenticated")
APISERVER = Actor(User("system:apiserver", groups=_MASTERS), APISERVER_MANAGER, admission=False)
CONTROLLER_MANAGER = Actor(
    User("system:kube-controller-manager", groups=_MASTERS), "kube-controller-manager", admission=True
)


class Unchanged(Exception):
    """The edit changed nothing."""


class ObjectClient:
    """Client of all objects of a server, for code inside it."""

    def __init__(self, api: Services, actor: Actor = APISERVER) -> None:
        self._api = api
        self._actor = actor
        self.clock = api.clock
        self._parsed: dict[str, tuple[int, Object]] = {}
        self._shared: dict[type[Any], Any] = {}
        self.config = api.config
        self.registry = api.registry
        self.resources = api.resources
        self.tokens: Tokens | None = None
        self.connections: Pool | None = None

    def acting_as(self, actor: Actor) -> ObjectClient:
        """Client of the same server for another actor."""
        if actor == self._actor:
            return self
        other = ObjectClient(self._api, actor)
        other.tokens, other.connections = self.tokens, self.connections
        other._parsed, other._shared = self._parsed, self._shared
        return other

    def shared(self, kind: type[State]) -> State:
        """The instance of a class that all control loops of this server share. It is created on first use."""
        state: State | None = self._shared.get(kind)
        if state is None:
            state = self._shared[kind] = kind()
        return state

    def get(self, resource: str, name: str, namespace: str = "", *, group: str = "") -> Object | None:
        return self.registry.get(resource, name, namespace, group=group)

    def list(self, resource: str, namespace: str | None = "", *, group: str = "") -> Iterator[Object]:
        return self.registry.list(resource, namespace, group=group)

    async def mutate(
        self,
        resource: str,
        name: str,
        namespace: str,
        change: Edit,
        *,
        group: str = "",
    ) -> Object:
        return await self.registry.mutate(resource, name, namespace, change, group=group)

    def resource(self, resource: str, group: str = "", name: str = "") -> Resource:
        """A resource in its stored version. Raises 404 for the named object if the resource is not served."""
        api_resource = self.resources.stored(group, resource)
        if api_resource is None:
            raise status.not_found(group, resource, name)
        return api_resource

    def collection(self, resource: str, *, group: str = "") -> Collection:
        return self.registry.collection(self.resource(resource, group))

    def labelled(self, resource: str, namespace: str, *, group: str = "") -> EntryList:
        """Cache entries of a namespace. Callers can check labels before parsing."""
        api_resource = self.resource(resource, group)
        return [*self.registry.collection(api_resource).below(f"{api_resource.prefix}{namespace}/")]

    def parsed(self, entry: Entry) -> Object:
        """Parsed object of an entry. It is shared and must not be changed."""
        revision, obj = self._parsed.get(entry.key, (0, {}))
        if revision != entry.revision:
            # All keys belong to stored objects, so the store also bounds the dictionary.
            if len(self._parsed) >= PARSED:
                self._parsed.clear()
            obj = entry.object()
            self._parsed[entry.key] = (entry.revision, obj)
        return obj

    def _request(
        self, verb: str, resource: Resource, namespace: str, name: str, subresource: str = ""
    ) -> ResourceRequest:
        """Request of the actor, without HTTP."""
        line = (resource.group, resource.version, namespace, resource.resource, subresource, name)
        info = RequestInfo("", verb, True, *line)
        ctx = ResourceRequest(self._api, Request("", "", "", {}), info, {}, self._actor.user)
        ctx.set_resource(resource)
        ctx.field_manager = self._actor.field_manager
        return ctx

    async def create(self, resource: str, obj: Object, namespace: str = "", *, group: str = "") -> Object:
        name = obj["metadata"].get("name", "")
        api_resource = self.resource(resource, group, name)
        ctx = self._request("create", api_resource, namespace, name)
        obj = body.decode_parsed(obj, [], body.expected(api_resource)).object
        if api_resource.namespaced:
            obj["metadata"]["namespace"] = namespace
        api_resource.strategy.default(obj)
        obj = managed_fields.track(ctx, obj, None, api_resource.strategy.reset_fields)
        if self._actor.admission:
            await self._api.admission.admit(ctx, obj, None)
        outcome = await write_path.insert_object(ctx, obj)
        assert outcome.entry is not None
        return outcome.entry.object()

    async def update(
        self, resource: str, name: str, namespace: str, edit: Edit, *, group: str = "", subresource: str = ""
    ) -> Object | None:
        """Reads, edits and writes the object or subresource like PUT, with retries on conflicts. None if the
        edit changes nothing or the object does not exist."""
        api_resource = self.resource(resource, group)
        return await self.update_of(api_resource, name, namespace, edit, subresource)

    async def update_of(
        self, resource: Resource, name: str, namespace: str, edit: Edit, subresource: str = ""
    ) -> Object | None:
        path = resource.strategy.subresources[subresource] if subresource else resource.strategy
        assert isinstance(path, Update)
        for attempt in range(RETRIES):
            ctx = self._request("update", resource, namespace, name, subresource)

            async def transform(
                old: Object | None, fresh: write_path.Fresh, ctx: ResourceRequest = ctx
            ) -> Object:
                assert old is not None
                new = edit(await fresh())
                if new is None or new == old:
                    raise Unchanged
                new = managed_fields.track(ctx, new, old, path.reset_fields)
                if self._actor.admission:
                    await self._api.admission.admit(ctx, new, old)
                return new

            try:
                outcome = await write_path.update_object(ctx, path, transform)
            except Unchanged:
                return None
            except status.APIError as error:
                if error.code == 404:
                    return None
                if error.code != 409 or attempt + 1 == RETRIES:
                    raise
            else:
                return outcome.object
        return None

    async def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        kind: str,
        document: Any,
        *,
        subresource: str = "",
        user: User | None = None,
    ) -> None:
        """Patches an object or subresource like PATCH. `kind` is the media type. Server-side apply creates the object
        if it does not exist, and takes over fields of other managers. With a `user`, the request is authorized for that
        user and made in the user's name."""
        query = {"fieldManager": self._actor.field_manager}
        if kind == APPLY:
            query["force"] = "true"
        line = (resource.group, resource.version, namespace, resource.resource, subresource, name)
        info = RequestInfo("", "patch", True, *line)
        if user is not None:
            auth_query = attributes(user, info)
            verdict = await self._api.authorization.verdict(auth_query)
            if not verdict.allowed:
                raise auth_query.forbidden(verdict.reason)
        headers = {"content-type": kind}
        request = Request("PATCH", "", "", headers, orjson.dumps(document))
        ctx = ResourceRequest(self._api, request, info, query, user or self._actor.user)
        ctx.set_resource(resource)
        await patch(ctx)

    async def in_version(self, resource: Resource, entry: Entry) -> Object:
        """Object of an entry in the version of a resource."""
        ctx = self._request("get", resource, entry.namespace, entry.name)
        obj = await decode_entry(ctx, entry)
        return to_request_version(ctx, obj) if is_converted(ctx) else obj

    async def delete(
        self, resource: str, name: str, namespace: str = "", *, group: str = "", **options: Any
    ) -> Object | None:
        ctx = self._request("delete", self.resource(resource, group, name), namespace, name)
        entry = await self.registry.read(ctx.resource, namespace, name)
        if entry is None:
            raise ctx.not_found()
        gone, remaining_entry = await self._remove(ctx, entry, options)
        return remaining_entry.object() if remaining_entry is not None else gone

    async def delete_entry(self, resource: Resource, entry: Entry, **options: Any) -> Entry | None:
        """Deletes an object. Returns the entry that remains (finalizers or grace period), or None if it is deleted."""
        ctx = self._request("delete", resource, entry.namespace, entry.name)
        try:
            _, remaining_entry = await self._remove(ctx, entry, options)
        except status.APIError as error:
            if error.code != 404:
                raise
            return None
        return remaining_entry

    async def _remove(
        self, ctx: ResourceRequest, entry: Entry, options: Object
    ) -> tuple[Object, Entry | None]:
        admitted = not self._actor.admission
        return await delete_object(ctx, entry, delete_options(options, {}), admitted=admitted)

    @functools.cached_property
    def node_ports(self) -> RangeAllocation:
        ports = service_ports.port_range(self._api.config)
        return RangeAllocation(
            self.registry.store,
            service_ports.KEY,
            ports,
            lambda: service_ports.in_use(self),
            reserved=service_ports.reserved(len(ports)),
        )

    async def catch_up(self) -> None:
        await self.registry.cache.catch_up()

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
        return await self._api.authorization.rules(user, namespace)

    async def granted(self, user: User, namespace: str, wanted: Sequence[Object]) -> Rules:
        return await self._api.authorization.rbac.relevant_rules(user, namespace, wanted)
