"""managedFields for every kind of write: who the manager is, and the ownership that follows."""

from __future__ import annotations

from typing import Any

from kubist.context import Context
from kubist.kinds.strategy import Scale
from kubist.schema.node import Schema

Object = dict[str, Any]


def manager(ctx: Context) -> str:
    """fieldManager, or the first part of the User-Agent."""
    if ctx.field_manager:
        return ctx.field_manager
    name = "".join(char for char in ctx.user_agent.partition("/")[0] if char.isprintable())
    while len(name.encode()) > 128:
        name = name[:-1]
    return name or "unknown"


def on_create(
    ctx: Context, obj: Object, reset: tuple[str, ...], *, schema: Schema | None = None, api_version: str = ""
) -> None:
    pass


def on_update(ctx: Context, new: Object, old: Object | None, reset: tuple[str, ...]) -> None:
    if old is not None and "managedFields" in old["metadata"]:
        new["metadata"]["managedFields"] = old["metadata"]["managedFields"]


def on_scale(ctx: Context, new: Object, old: Object, path: Scale) -> None:
    pass
