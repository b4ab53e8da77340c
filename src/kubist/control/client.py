"""Object client for controllers: reads from the cache, writes through the verbs with admission.

Controllers act as the user and field manager kube-controller-manager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubist import request as requests
from kubist.http.messages import Request
from kubist.meta import status
from kubist.meta.object import Object
from kubist.objectclient import ObjectClient
from kubist.resources.context import User
from kubist.resources.resource import Resource
from kubist.resources.strategy import Update
from kubist.storage.cache import Collection, Entry
from kubist.verbs import body, managed_fields, write_path
from kubist.verbs.call import Call
from kubist.verbs.delete import remove
from kubist.verbs.lending import Fresh
from kubist.verbs.options import delete_options
from kubist.verbs.services import Services

Edit = Callable[[Object], Object | None]
"""Changes an object in place and returns it. None: no change."""

MANAGER = "kube-controller-manager"
USER = User("system:kube-controller-manager", groups=("system:masters", "system:authenticated"))
RETRIES = 10
PARSED = 20_000
"""Maximum number of parsed objects that are kept for controllers."""


class Unchanged(Exception):
    """The edit changed nothing."""


class Client(ObjectClient):
    """All objects of a server, for its controllers."""

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
        """Cache entries of a namespace. Callers can check labels before parsing."""
        found = self.resource(resource, group)
        return list(self.registry.collection(found).below(f"{found.prefix}{namespace}/"))

    def parsed(self, entry: Entry) -> Object:
        """Parsed object of an entry. It is shared and must not be changed."""
        revision, obj = self._parsed.get(entry.key, (0, {}))
        if revision != entry.revision:
            # The keys are those of stored objects, so the store bounds the dictionary too.
            if len(self._parsed) >= PARSED:
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
        managed_fields.track(call, obj, None, found.strategy.reset_fields)
        await self._api.admission.admit(call.context, obj, None)
        outcome = await write_path.insert_object(call, obj)
        assert outcome.entry is not None
        return outcome.entry.object()

    async def update(
        self, resource: str, name: str, namespace: str, edit: Edit, *, group: str = "", subresource: str = ""
    ) -> Object | None:
        """Reads, edits and writes the object or subresource like PUT, with retries on conflicts. None if the
        edit changes nothing or the object does not exist."""
        found = self.resource(resource, group)
        return await self.update_of(found, name, namespace, edit, subresource)

    async def update_of(
        self, found: Resource, name: str, namespace: str, edit: Edit, subresource: str = ""
    ) -> Object | None:
        path = found.strategy.subresources[subresource] if subresource else found.strategy
        assert isinstance(path, Update)
        for attempt in range(RETRIES):
            call = self.call("update", found, namespace, name, subresource)

            async def transform(old: Object | None, fresh: Fresh, call: Call = call) -> Object:
                assert old is not None
                new = edit(await fresh())
                if new is None or new == old:
                    raise Unchanged
                managed_fields.track(call, new, old, path.reset_fields)
                await self._api.admission.admit(call.context, new, old)
                return new

            try:
                outcome = await write_path.update_object(call, path, transform)
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
        """Deletes an object. Returns the entry that remains (finalizers or grace period), or None if it is deleted."""
        call = self.call("delete", found, entry.namespace, entry.name)
        try:
            _, held = await remove(call, entry, delete_options(options, {}))
        except status.APIError as error:
            if error.code != 404:
                raise
            return None
        return held
