"""The cluster for loops: reads from the cache, writes as the verbs do them, admission included.

Loops work as the user and the field manager of a kube-controller-manager, of whose jobs these are some.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubist import request as requests
from kubist.http.messages import Request
from kubist.meta import status
from kubist.objectclient import ObjectClient
from kubist.resources.context import User
from kubist.resources.resource import Resource
from kubist.resources.strategy import Update
from kubist.storage.cache import Collection, Entry
from kubist.verbs import body, guarded, managed
from kubist.verbs import create as create_verb
from kubist.verbs.call import Call
from kubist.verbs.delete import remove
from kubist.verbs.options import delete_options
from kubist.verbs.services import Services

Object = dict[str, Any]
Edit = Callable[[Object], Object | None]
"""Changes an object in place and returns it; None: nothing to do."""

MANAGER = "kube-controller-manager"
USER = User("system:kube-controller-manager", groups=("system:masters", "system:authenticated"))
RETRIES = 10
PARSED = 20_000
"""How many objects are kept parsed, for loops that look at many of them again and again."""


class Unchanged(Exception):
    """An edit found nothing to do."""


class Client(ObjectClient):
    """All of a server's objects, for its loops."""

    def __init__(self, api: Services) -> None:
        super().__init__(api)
        self.tokens = api.cluster.tokens
        self.config = api.config
        self.registry = api.registry
        self.resources = api.resources
        self._parsed: dict[str, tuple[int, Object]] = {}

    def resource(self, resource: str, group: str = "") -> Resource:
        found = self.resources.stored(group, resource)
        if found is None:
            raise status.not_found(group, resource, "")
        return found

    def collection(self, resource: str, *, group: str = "") -> Collection:
        return self.registry.collection(self.resource(resource, group))

    def labelled(self, resource: str, namespace: str, *, group: str = "") -> list[Entry]:
        """The stored versions in a namespace, for those who look at labels before they look inside."""
        found = self.resource(resource, group)
        return list(self.registry.collection(found).below(f"{found.prefix}{namespace}/"))

    def parsed(self, entry: Entry) -> Object:
        """The object of a stored version, which others look at as well: not to be changed."""
        revision, obj = self._parsed.get(entry.key, (0, {}))
        if revision != entry.revision:
            if (
                len(self._parsed) >= PARSED
            ):  # Bounded by what is stored: the keys are those of stored objects.
                self._parsed.clear()
            obj = entry.object()
            self._parsed[entry.key] = (entry.revision, obj)
        return obj

    def call(self, verb: str, found: Resource, namespace: str, name: str, subresource: str = "") -> Call:
        info = requests.RequestInfo(
            "", verb, True, found.group, found.version, namespace, found.resource, subresource, name
        )
        call = Call(self._api, Request("", "", "", {}), info, found, USER, {}, [], {})
        call.context.field_manager = MANAGER
        return call

    async def create(self, resource: str, obj: Object, namespace: str = "", *, group: str = "") -> Object:
        found = self.resource(resource, group)
        call = self.call("create", found, namespace, obj["metadata"].get("name", ""))
        obj = body.decode_parsed(obj, [], body.expected(found)).object
        if found.namespaced:
            obj["metadata"]["namespace"] = namespace
        found.strategy.default(obj)
        call.context.name = obj["metadata"].get("name", "")
        managed.track(call, obj, None, found.strategy.reset_fields)
        await self._api.admission.admit(call.context, obj, None)
        entry = await create_verb.insert(call, obj)
        assert entry is not None
        return entry.object()

    async def update(
        self, resource: str, name: str, namespace: str, edit: Edit, *, group: str = "", subresource: str = ""
    ) -> Object | None:
        """Read, edit, write as PUT of the object or the sub-resource does; again if it changed meanwhile. None
        if there is nothing to edit, or no longer any object."""
        found = self.resource(resource, group)
        return await self.update_of(found, name, namespace, edit, subresource)

    async def update_of(
        self, found: Resource, name: str, namespace: str, edit: Edit, subresource: str = ""
    ) -> Object | None:
        path = found.strategy.subresources[subresource] if subresource else found.strategy
        assert isinstance(path, Update)
        for attempt in range(RETRIES):
            call = self.call("update", found, namespace, name, subresource)

            async def transform(old: Object | None, fresh: guarded.Fresh, call: Call = call) -> Object:
                assert old is not None
                new = edit(await fresh())
                if new is None or new == old:
                    raise Unchanged
                managed.track(call, new, old, path.reset_fields)
                await self._api.admission.admit(call.context, new, old)
                return new

            try:
                outcome = await guarded.update(call, path, transform)
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

    async def delete_entry(self, found: Resource, entry: Entry, **options: Any) -> Entry | None:
        """Delete a stored version of an object, or what it has become. The version that stays and waits, if any;
        nothing happens if it is gone already."""
        call = self.call("delete", found, entry.namespace, entry.name)
        try:
            _, held = await remove(call, entry, delete_options(options, {}))
        except status.APIError as error:
            if error.code != 404:
                raise
            return None
        return held
