"""Error of a rejected request."""

from __future__ import annotations

from kubist.meta.object import Object


class Refused(Exception):
    """The server rejected a request. `status` is the Status of the response."""

    def __init__(self, code: int, status: Object) -> None:
        super().__init__(status.get("message", f"HTTP {code}"))
        self.code = code
        self.status = status
