"""Carries out the steps of a Stage through the object client."""

from __future__ import annotations

from collections.abc import Iterable

from kubist.api.filters.usernames import account_groups, split_username
from kubist.api.object_client import ObjectClient
from kubist.api.resources.context import User
from kubist.api.resources.resource import Resource
from kubist.api.verbs.patch import APPLY
from kubist.cluster.control.events import EventRecorder
from kubist.cluster.simulation.stages import steps
from kubist.cluster.simulation.stages.limits import StageError
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.storage.cache.cache import Entry

AUTHENTICATED = "system:authenticated"


class Actions:
    def __init__(self, client: ObjectClient, events: EventRecorder) -> None:
        self._client = client
        self._events = events

    async def perform(
        self, step: steps.Step, resource: Resource, entry: Entry, obj: Object, environment: steps.Environment
    ) -> None:
        """Carries out one step for an object, which is in the version of `resource`."""
        match step:
            case steps.SendEvent():
                self.send_events((step,), obj)
            case steps.ChangeFinalizers():
                await self._client.update_of(
                    resource, entry.name, entry.namespace, lambda stored: _with_finalizers(stored, step, obj)
                )
            case steps.Delete():
                conditions = {"uid": obj["metadata"]["uid"]}
                await self._client.delete_entry(
                    resource, entry, gracePeriodSeconds=0, preconditions=conditions
                )
            case steps.Patch():
                await self._client.patch(
                    resource,
                    entry.name,
                    entry.namespace,
                    step.type,
                    step.document(obj, environment),
                    subresource=step.subresource,
                    user=impersonated(step.username),
                )
            case steps.Apply():
                await self._apply(step, entry.namespace, step.document(obj, environment))

    @staticmethod
    def is_deletion(step: steps.Step) -> bool:
        return isinstance(step, steps.Delete)

    def send_events(self, remaining: Iterable[steps.Step], obj: Object) -> None:
        """Sends the events among these steps. After a deletion only they remain."""
        for step in remaining:
            if isinstance(step, steps.SendEvent):
                self._events.emit(obj, step.type, step.reason, step.message)

    async def _apply(self, step: steps.Apply, source_namespace: str, document: Object) -> None:
        """Creates an object or patches the existing one."""
        group, _, version = document["apiVersion"].rpartition("/")
        resource = self._client.find_kind(group, version, document["kind"])
        if resource is None:
            raise StageError(f"the server has no {document['kind']} of {document['apiVersion']}")
        metadata = document["metadata"]
        namespace = ""
        if resource.namespaced:
            namespace = metadata.setdefault("namespace", source_namespace or "default")
        try:
            await self._patch(step, resource, namespace, step.type, document)
        except APIError as error:
            if error.code != 404 or step.subresource:
                raise
            # The object does not exist. Server-side apply creates it.
            await self._patch(step, resource, namespace, APPLY, document)

    async def _patch(
        self, step: steps.Apply, resource: Resource, namespace: str, kind: str, document: Object
    ) -> None:
        name = document["metadata"]["name"]
        user = impersonated(step.username)
        await self._client.patch(
            resource, name, namespace, kind, document, subresource=step.subresource, user=user
        )


def _with_finalizers(stored: Object, step: steps.ChangeFinalizers, obj: Object) -> Object | None:
    metadata = stored["metadata"]
    if metadata.get("uid") != obj["metadata"].get("uid"):
        return None
    finalizers = step.changed(metadata.get("finalizers") or [])
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    return stored


def impersonated(username: str) -> User | None:
    """User of an impersonating request, with the groups that the server adds."""
    if not username:
        return None
    account = split_username(username)
    groups = account_groups(account[0]) if account is not None else ()
    return User(username, groups=(*groups, AUTHENTICATED))
