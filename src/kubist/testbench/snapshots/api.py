"""Operations on named snapshots over HTTP: `/kubist/v1/snapshots`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kubist.base.http.messages import Response
from kubist.model.meta.object import Object
from kubist.testbench.control_api.call import Call
from kubist.testbench.control_api.control_api import ControlAPI, json_response
from kubist.testbench.control_api.schemas import closed, list_of

if TYPE_CHECKING:
    from kubist.testbench.snapshots.snapshots import Snapshots

_PROPERTIES: Object = {
    "name": {"type": "string", "description": "DNS subdomain name."},
    "created": {"type": "string", "format": "date-time"},
    "resourceVersion": {"type": "string", "description": "Resource version of the saved content."},
    "objects": {"type": "integer"},
    "bytes": {"type": "integer", "description": "Size of the file."},
}
SCHEMAS: dict[str, Object] = {
    "Snapshot": closed(_PROPERTIES, "name"),
    "SnapshotList": list_of("Snapshot"),
    "NewSnapshot": closed({"name": _PROPERTIES["name"]}, "name"),
}
BODIES = {("POST", "snapshots"): "NewSnapshot"}
RESULTS = {
    ("GET", "snapshots"): "SnapshotList",
    ("POST", "snapshots"): "Snapshot",
    ("GET", "snapshots/{name}"): "Snapshot",
    ("DELETE", "snapshots/{name}"): "Snapshot",
    ("POST", "snapshots/{name}/restore"): "Snapshot",
}


class SnapshotsAPI:
    """Routes of the named snapshots."""

    def __init__(self, snapshots: Callable[[], Snapshots]) -> None:
        self._snapshots = snapshots

    def register(self, api: ControlAPI) -> None:
        api.add("GET", "snapshots", self._list)
        api.add("POST", "snapshots", self._save)
        api.add("GET", "snapshots/{name}", self._get)
        api.add("DELETE", "snapshots/{name}", self._delete)
        api.add("POST", "snapshots/{name}/restore", self._restore)

    async def _list(self, _: Call) -> Object:
        """All named snapshots, in order of their names."""
        return {"items": await self._snapshots().list_all()}

    async def _save(self, call: Call) -> Response:
        """Saves the content of the server under a new name."""
        asked = call.fields("Snapshot")
        name = asked.text("name")
        if not name and not asked.errors:
            asked.require("name", "the name of the new snapshot")
        asked.done()
        return json_response(await self._snapshots().save(name), 201)

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
