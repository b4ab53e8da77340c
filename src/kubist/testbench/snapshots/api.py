"""Operations on named snapshots over HTTP: `/kubist/v1/snapshots`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from kubist.model.meta.object import Object
from kubist.testbench.control_api.body import Body
from kubist.testbench.control_api.control_api import Call, ControlAPI, Operation
from kubist.testbench.control_api.field_types import Fields, Time

if TYPE_CHECKING:
    from kubist.testbench.snapshots.snapshots import Snapshots


class NewSnapshot(Body):
    name: Annotated[str, "DNS subdomain name."]

    def check(self, fields: Fields) -> None:
        if not self.name and not fields.errors:
            fields.require("name", "the name of the new snapshot")


class Snapshot(NewSnapshot):
    created: Time | None
    resource_version: Annotated[str | None, "Resource version of the saved content."]
    objects: int | None
    bytes: Annotated[int | None, "Size of the file."]


class SnapshotsAPI:
    """Routes of the named snapshots."""

    def __init__(self, snapshots: Callable[[], Snapshots]) -> None:
        self._snapshots = snapshots

    def register(self, api: ControlAPI) -> None:
        api.add(
            Operation("GET", "snapshots", self._list, result="SnapshotList"),
            Operation("POST", "snapshots", self._save, body="NewSnapshot", result="Snapshot", code=201),
            Operation("GET", "snapshots/{name}", self._get, result="Snapshot"),
            Operation("DELETE", "snapshots/{name}", self._delete, result="Snapshot"),
            Operation("POST", "snapshots/{name}/restore", self._restore, result="Snapshot"),
        )

    async def _list(self, _: Call) -> Object:
        """All named snapshots, in order of their names."""
        return {"items": await self._snapshots().list_all()}

    async def _save(self, call: Call) -> Object:
        """Saves the content of the server under a new name."""
        return await self._snapshots().save(call.read("Snapshot", NewSnapshot).name)

    async def _get(self, call: Call) -> Object:
        """One named snapshot."""
        return await self._snapshots().get(call.params["name"])

    async def _delete(self, call: Call) -> Object:
        """Deletes a named snapshot, and returns it."""
        return await self._snapshots().delete(call.params["name"])

    async def _restore(self, call: Call) -> Object:
        """Makes a named snapshot the content of the server. Watchers see the changes."""
        call.fields("SnapshotRestore").done()
        return await self._snapshots().restore(call.params["name"])
