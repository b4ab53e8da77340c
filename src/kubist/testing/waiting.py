"""Waits for a state of objects. Changes of the server's cache trigger the checks, without polling."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from kubist.api.resources.resource import Resource
from kubist.model.meta.object import Object
from kubist.model.meta.selectors import ParseError, parse_field_selector, parse_label_selector
from kubist.server.server import Server
from kubist.storage.cache.cache import Change, Collection
from kubist.storage.cache.entry import Entry
from kubist.testing.references import Selection
from kubist.testing.states import Deleted, State

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

T = TypeVar("T")
RUN_BY_KUBELETS = frozenset(
    ("pods", "deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "replicationcontrollers")
)
"""Resources whose status needs running pods."""
SHOWN = 5
"""Maximum number of objects in a message."""


@dataclass(frozen=True)
class Wait:
    """A state that must be reached in time, and last."""

    state: State
    timeout: float
    """Seconds."""
    stable_for: float = 0.0
    """Seconds for which the state must last."""


class Watched:
    """One object, or the objects of a selection, as the cache has them."""

    def __init__(self, title: str, resource: Resource, covers: Callable[[Entry], bool]) -> None:
        self.title = title
        self.resource = resource
        self.covers = covers
        self.objects: dict[str, Object] = {}
        self.last: Object | None = None
        """Last version of an object that was seen."""

    def begin(self, collection: Collection, prefix: str) -> None:
        for entry in collection.below(prefix):
            if self.covers(entry):
                self.last = self.objects[entry.key] = entry.object()

    def follow(self, change: Change) -> bool:
        """Whether the change is one of the objects."""
        entry = change.new or change.old
        if entry is None:
            return False
        if change.new is not None and self.covers(change.new):
            self.last = self.objects[entry.key] = change.new.object()
            return True
        return self.objects.pop(entry.key, None) is not None


async def wait_one(server: Server, resource: Resource, namespace: str, name: str, wait: Wait) -> Object:
    """The object once it is in the state (for a deletion, its last version). Raises TimeoutError, and RuntimeError
    if the function fails."""
    key = resource.key(namespace, name)
    watched = Watched(f"{resource.resource}/{name}", resource, lambda entry: entry.key == key)

    def is_reached() -> bool:
        return wait.state.is_met(watched.objects.get(key))

    def explain() -> str:
        obj = watched.objects.get(key)
        if obj is not None:
            return wait.state.explain(obj)
        elsewhere = _namespaces_with(server, resource, name)
        hint = f", but in namespace {', '.join(elsewhere[:SHOWN])}" if elsewhere else ""
        return f"; the object does not exist{hint}"

    await _wait(server, watched, key, wait, is_reached, f"not {wait.state.title}", explain)
    return watched.last or {}


async def wait_many(
    server: Server, resource: Resource, selection: Selection, count: int, wait: Wait
) -> list[Object]:
    """The objects once there are exactly `count`, all in the state. Raises as `wait_one` does."""
    prefix, covers = _matcher(resource, selection)
    watched = Watched(_title(resource, selection), resource, covers)
    state = wait.state

    def is_reached() -> bool:
        objects = watched.objects.values()
        return all(map(state.is_met, objects)) and len(objects) == count

    def explain() -> str:
        others = {key: obj for key, obj in sorted(watched.objects.items()) if not state.is_met(obj)}
        names = [f"{obj['metadata']['name']}" for obj in list(others.values())[:SHOWN]]
        more = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
        first = next(iter(others.values()), None)
        bad = f"; not {state.title}: {', '.join(names)}{more}{state.explain(first)}" if first else ""
        return f"; there are {len(watched.objects)}{bad}"

    goal = f"not {count} objects" + (f" that are all {state.title}" if count else "")
    await _wait(server, watched, prefix, wait, is_reached, goal, explain)
    return [watched.objects[key] for key in sorted(watched.objects)]


async def _wait(
    server: Server,
    watched: Watched,
    prefix: str,
    wait: Wait,
    is_reached: Callable[[], bool],
    goal: str,
    explain: Callable[[], str],
) -> None:
    collection = server.registry.collection(watched.resource)
    await collection.ready()
    watched.begin(collection, prefix)
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    timer: asyncio.TimerHandle | None = None
    interruptions = 0

    def finish() -> None:
        if not done.done():
            done.set_result(None)

    def check() -> None:
        nonlocal timer, interruptions
        if done.done():
            return
        try:
            reached = is_reached()
        except RuntimeError as error:
            done.set_exception(RuntimeError(f"{watched.title}: {error}"))
            return
        if reached and not wait.stable_for:
            done.set_result(None)
        elif reached and timer is None:
            timer = loop.call_later(wait.stable_for, finish)
        elif not reached and timer is not None:
            timer.cancel()
            timer = None
            interruptions += 1

    def changed(changes: list[Change]) -> None:
        for change in changes:
            if not done.done() and watched.follow(change):
                check()

    token = object()
    collection.subscribe(token, changed)
    try:
        check()
        await asyncio.wait_for(done, wait.timeout)
    except TimeoutError:
        late = f"; it was for a shorter time, {interruptions} times" if interruptions else ""
        if timer is not None:
            late = f"; it is, but not for {wait.stable_for:g} s yet"
        text = f"{watched.title}: {goal} after {wait.timeout:g} s{late}{explain() if timer is None else ''}"
        raise TimeoutError(text + _without_kubelet(server, watched, wait.state)) from None
    finally:
        if timer is not None:
            timer.cancel()
        collection.unsubscribe(token)


def _without_kubelet(server: Server, watched: Watched, state: State) -> str:
    """Hint for an object whose status depends on running pods, on a cluster that runs none."""
    config, resource = server.config, watched.resource
    if config.workloads or config.simulated_nodes or isinstance(state, Deleted) or not watched.objects:
        return ""
    if resource.resource not in RUN_BY_KUBELETS or resource.custom:
        return ""
    return (
        "; this cluster runs no pods: use workloads=True, such as in @pytest.mark.kubist(workloads=True), "
        f'or set the status with cluster.patch("{resource.singular}/…", {{"status": …}}, subresource="status")'
    )


def _namespaces_with(server: Server, resource: Resource, name: str) -> list[str]:
    """Namespaces that have an object of this name."""
    collection = server.registry.collection(resource)
    return [entry.namespace for entry in collection.below(resource.prefix) if entry.name == name]


def _title(resource: Resource, selection: Selection) -> str:
    parts = [resource.resource]
    if selection.label_selector:
        parts += ["-l", selection.label_selector]
    if selection.field_selector:
        parts += ["--field-selector", selection.field_selector]
    if resource.namespaced:
        parts += ["-A"] if selection.namespace is None else ["-n", selection.namespace]
    return " ".join(parts)


def _matcher(resource: Resource, selection: Selection) -> tuple[str, Callable[[Entry], bool]]:
    """Key prefix of the objects of a selection, and a function that tests whether an object belongs to it."""
    labels = _parsed("label", parse_label_selector, selection.label_selector)
    fields = _parsed("field", parse_field_selector, selection.field_selector)
    strategy = resource.strategy
    for name, *_ in fields.requirements:
        if name not in ("metadata.name", "metadata.namespace", *strategy.field_labels):
            raise ValueError(strategy.unsupported_field_label(name))
    prefix = resource.prefix
    if resource.namespaced and selection.namespace is not None:
        prefix += f"{selection.namespace}/"

    def covers(entry: Entry) -> bool:
        if not entry.key.startswith(prefix) or not labels.matches(entry.labels):
            return False
        known = {**entry.fields, "metadata.name": entry.name, "metadata.namespace": entry.namespace}
        return fields.empty or fields.matches(known)

    return prefix, covers


def _parsed(kind: str, parse: Callable[[str], T], text: str) -> T:
    try:
        return parse(text)
    except ParseError as error:
        raise ValueError(f'the {kind} selector "{text}" is malformed: {error}') from None


def check_count(reference: Any, count: int | None, is_selection: bool, state: State) -> None:
    """Rejects a wait for several objects without a count, and a count for one object."""
    if is_selection and count is None:
        raise ValueError(
            f'"{reference}" may be several objects: say how many with count=3 (count=0: none), or name one '
            "as in pod/web"
        )
    if count is not None and not is_selection:
        raise ValueError(f'count= is for several objects, such as "pods -l app=web", not for "{reference}"')
    if count and isinstance(state, Deleted):
        raise ValueError('"delete" of several objects needs count=0')
