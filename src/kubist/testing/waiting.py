"""Waiting for an object to be in a state: told by the server's own cache, so without asking again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from kubist.resources import Resource
from kubist.server import Server
from kubist.storage.cache import Change

Object = dict[str, Any]
Until = str | Callable[[Object], bool]
"""A condition's type (`Ready`), `delete`, or a function of the object."""


def met(obj: Object | None, until: Until) -> bool:
    if until == "delete":
        return obj is None
    if obj is None:
        return False
    if callable(until):
        return until(obj)
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(
        condition.get("type") == until and condition.get("status") == "True" for condition in conditions
    )


async def wait(
    server: Server, resource: Resource, namespace: str, name: str, until: Until, timeout: float
) -> Object:
    """The object once it is so (the last state there was, for a deletion); TimeoutError if it never is."""
    collection = server.registry.collection(resource)
    await collection.ready()
    key = resource.key(namespace, name)
    entry = collection.get(key)
    last: Object | None = entry.object() if entry is not None else None
    if met(last, until):
        return last or {}
    found: asyncio.Future[Object] = asyncio.get_running_loop().create_future()

    def changed(changes: list[Change]) -> None:
        nonlocal last
        for change in changes:
            entry = change.new or change.old
            if entry is None or entry.key != key or found.done():
                continue
            if change.new is not None:
                last = entry.object()
            try:
                if met(last if change.new is not None else None, until):
                    found.set_result(last or {})
            except Exception as error:
                found.set_exception(error)

    token = object()
    collection.subscribe(token, changed)
    try:
        return await asyncio.wait_for(found, timeout)
    except TimeoutError:
        wanted = until if isinstance(until, str) else getattr(until, "__name__", "what is waited for")
        state = "absent" if last is None else f"status: {last.get('status')}"
        raise TimeoutError(f"{resource.resource}/{name}: not {wanted} after {timeout:g} s; {state}") from None
    finally:
        collection.unsubscribe(token)
