"""Operations on fault rules over HTTP: `/kubist/v1/faults`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.testbench.control_api.control_api import Call, ControlAPI, Operation

if TYPE_CHECKING:
    from kubist.testbench.faults.injection import Faults

BODY_LIMIT = 64 * 1024
"""Maximum size of a rule in bytes."""


class FaultsAPI:
    """Routes of the fault rules."""

    def __init__(self, faults: Callable[[], Faults]) -> None:
        self._faults = faults

    def register(self, api: ControlAPI) -> None:
        api.add(
            Operation("GET", "faults", self._list, result="FaultList"),
            Operation("POST", "faults", self._add, body="FaultRule", result="Fault", code=201),
            Operation("DELETE", "faults", self._clear, result="FaultList"),
            Operation("GET", "faults/{id}", self._get, result="Fault"),
            Operation("DELETE", "faults/{id}", self._delete, result="Fault"),
        )

    async def _list(self, _: Call) -> Object:
        """All fault rules, in order of evaluation, with their counts."""
        return {"items": [fault.state() for fault in self._faults()]}

    async def _add(self, call: Call) -> Object:
        """Adds a fault rule."""
        if len(call.request.body) > BODY_LIMIT:
            raise status.body_too_large(BODY_LIMIT)
        return (await self._faults().add(call.json())).state()

    async def _clear(self, _: Call) -> Object:
        """Removes all fault rules, and returns them with their counts."""
        removed = [fault.state() for fault in self._faults()]
        self._faults().clear()
        return {"items": removed}

    async def _get(self, call: Call) -> Object:
        """One fault rule with its counts."""
        fault = self._faults().get(call.params["id"])
        if fault is None:
            raise status.not_found("kubist.io", "faults", call.params["id"])
        return fault.state()

    async def _delete(self, call: Call) -> Object:
        """Removes a fault rule, and returns it with its counts."""
        fault = self._faults().remove(call.params["id"])
        if fault is None:
            raise status.not_found("kubist.io", "faults", call.params["id"])
        return fault.state()
