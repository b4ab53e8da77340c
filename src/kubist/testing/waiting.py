"""Waits for a state of an object. Changes of the server's cache trigger the checks, without polling."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubist.hints import did_you_mean
from kubist.meta.object import Object
from kubist.resources.resource import Resource
from kubist.server import Server
from kubist.storage.cache import Change

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

Until = str | Callable[[Object], bool]
"""Type of a condition (`Ready`), `delete`, or a function of the object."""


GONE = ("delete", "deleted", "deletion", "gone", "absent", "removed", "notfound")
"""Words that look like a condition but mean `delete`."""


def check(until: Until) -> None:
    """Rejects values that can never be met."""
    if callable(until):
        if inspect.iscoroutinefunction(until):
            raise TypeError("wait() takes a plain function, not a coroutine function")
        return
    if not isinstance(until, str) or not until:
        raise TypeError(f'wait() takes a condition\'s type, "delete" or a function, not {until!r}')
    form, _, meant = until.partition("=")
    if meant:
        meant = meant.partition("=")[0] if form == "condition" else "a function of the object"
    elif until != "delete" and until.lower() in GONE:
        meant = "delete"
    if meant:
        said = f'"{meant}"' if " " not in meant else meant
        raise ValueError(f'no condition is called "{until}"; did you mean {said}?')


def met(obj: Object | None, until: Until) -> bool:
    if until == "delete":
        return obj is None
    if obj is None:
        return False
    if callable(until):
        return until(obj)
    wanted = until.lower()
    return any(
        condition.get("type", "").lower() == wanted and condition.get("status") == "True"
        for condition in _conditions(obj)
    )


def _conditions(obj: Object) -> Any:
    return (obj.get("status") or {}).get("conditions") or ()


async def wait(
    server: Server, resource: Resource, namespace: str, name: str, until: Until, timeout: float
) -> Object:
    """The object once it is in the state (for a deletion, its last version). Raises TimeoutError after
    `timeout` seconds, and RuntimeError if the function fails."""
    where = f"{resource.resource}/{name}"
    collection = server.registry.collection(resource)
    await collection.ready()
    key = resource.key(namespace, name)
    entry = collection.get(key)
    last: Object | None = entry.object() if entry is not None else None
    try:
        if met(last, until):
            return last or {}
    except Exception as error:
        raise _failure(where, error) from None
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
                found.set_exception(_failure(where, error))

    token = object()
    collection.subscribe(token, changed)
    try:
        return await asyncio.wait_for(found, timeout)
    except TimeoutError:
        raise TimeoutError(
            f"{where}: not {_wanted(until)} after {timeout:g} s{_state(last, until)}"
        ) from None
    finally:
        collection.unsubscribe(token)


def _wanted(until: Until) -> str:
    if isinstance(until, str):
        return "deleted" if until == "delete" else until
    name = getattr(until, "__name__", "")
    return "accepted by the function" if name in ("", "<lambda>") else name


def _state(last: Object | None, until: Until) -> str:
    """End of the timeout message: a similar condition, or the object's last status."""
    if last is None:
        return "; the object does not exist"
    known = [str(condition.get("type")) for condition in _conditions(last)]
    hint = ""
    if isinstance(until, str) and until.lower() not in map(str.lower, known):
        hint = did_you_mean(until, known)
    return hint or f"; status: {last.get('status')}"


def _failure(where: str, error: Exception) -> RuntimeError:
    """Error for a function that raised `error`, with the line in which it did."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals is globals():
        trace = trace.tb_next
    line = f" ({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})" if trace else ""
    text = " ".join(str(error).split())
    return RuntimeError(f"{where}: the function failed with {type(error).__name__}: {text}{line}")
