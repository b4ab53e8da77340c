"""APIServices of custom resources: one for each served version of a group, deleted when no CRD serves the version."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from kubist.api.resources.context import Objects
from kubist.model.meta import status
from kubist.model.meta.object import Object

GROUP = "apiregistration.k8s.io"
AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"


class APIServices:
    """Keeps the automanaged APIServices of groups up to date, one group at a time. Only a process with
    `chores` writes."""

    def __init__(self, objects: Objects, versions: Callable[[str], set[str]], *, chores: bool) -> None:
        self._objects = objects
        self._does_chores = chores
        self._versions = versions
        self._due: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def due(self, group: str) -> None:
        if not self._does_chores:
            return
        self._due.add(group)
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._work())

    async def _work(self) -> None:
        while self._due:
            with contextlib.suppress(status.APIError):
                await self._sync(self._due.pop())

    async def _sync(self, group: str) -> None:
        wanted = self._versions(group)
        held = {
            found["spec"]["version"]: found
            for found in self._objects.list("apiservices", None, group=GROUP)
            if found["spec"].get("group") == group
        }
        for version in wanted - held.keys():
            with contextlib.suppress(status.APIError):
                await self._objects.create("apiservices", _apiservice(group, version), group=GROUP)
        for version in held.keys() - wanted:
            labels = held[version]["metadata"].get("labels") or {}
            if labels.get(AUTOMANAGED) == "true":
                with contextlib.suppress(status.APIError):
                    await self._objects.delete("apiservices", f"{version}.{group}", group=GROUP)


def _apiservice(group: str, version: str) -> Object:
    return {
        "metadata": {"name": f"{version}.{group}", "labels": {AUTOMANAGED: "true"}},
        "spec": {"group": group, "version": version, "groupPriorityMinimum": 1000, "versionPriority": 100},
        "status": {},
    }
