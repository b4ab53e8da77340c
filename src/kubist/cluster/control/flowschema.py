"""Sets the Dangling condition of FlowSchemas: whether their priority level exists. Part of the API server itself."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from kubist.api.bootstrap import dangling
from kubist.model.meta import status, times
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Change

if TYPE_CHECKING:
    from kubist.api.object_store.registry import Registry

log = logging.getLogger("kubist.control")
GROUP = "flowcontrol.apiserver.k8s.io"


async def keep_dangling_conditions(registry: Registry) -> None:
    """Checks all FlowSchemas after every change of a FlowSchema or priority level, as long as the server runs."""
    changed = asyncio.Event()
    changed.set()

    def wake(_: list[Change]) -> None:
        changed.set()

    for resource in ("flowschemas", "prioritylevelconfigurations"):
        stored = registry.resources.stored(GROUP, resource)
        assert stored is not None
        registry.collection(stored).subscribe(wake, wake)
    while True:
        await changed.wait()
        changed.clear()
        try:
            await _update_dangling_conditions(registry)
        except status.APIError as error:
            log.warning("cannot update the Dangling condition of flow schemas: %s", error.message)


async def _update_dangling_conditions(registry: Registry) -> None:
    levels = {obj["metadata"]["name"] for obj in registry.list("prioritylevelconfigurations", group=GROUP)}
    for schema in list(registry.list("flowschemas", group=GROUP)):
        if _with_dangling_condition(schema, levels) is None:
            continue
        try:
            name = schema["metadata"]["name"]
            await registry.mutate(
                "flowschemas", name, "", lambda old: _with_dangling_condition(old, levels), group=GROUP
            )
        except status.APIError as error:
            if error.code != 404:
                raise


def _with_dangling_condition(schema: Object, levels: set[str]) -> Object | None:
    """The FlowSchema with the correct condition; None if it has it already."""
    level = (schema["spec"].get("priorityLevelConfiguration") or {}).get("name", "")
    return schema if dangling.apply(schema, level_exists=level in levels, now=times.now()) else None
