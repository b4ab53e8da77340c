"""Error of a rejected request."""

from __future__ import annotations

from kubist.model.meta.object import Object


class Refused(Exception):
    """The server rejected a request. `status` is the Status of the response, `fault` the id of the fault rule that
    made the response; empty if none did."""

    def __init__(self, code: int, status: Object, fault: str = "") -> None:
        message = status.get("message", f"HTTP {code}")
        super().__init__(f"{message} (injected by fault rule {fault})" if fault else message)
        self.code = code
        self.status = status
        self.fault = fault
