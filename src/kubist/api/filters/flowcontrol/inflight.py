"""Limits without priorities: maximum numbers of concurrent reading and mutating requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kubist.api.filters.authorization.authorization import MASTERS
from kubist.api.filters.authorization.query import AuthorizationQuery
from kubist.api.filters.flowcontrol.seats import TooManyRequests, long_running
from kubist.base.http.messages import Headers


class InFlight:
    """Limits without priorities: `--max-requests-inflight` and `--max-mutating-requests-inflight`."""

    def __init__(self, reading: int, writing: int) -> None:
        self._limits = (reading, writing)
        self.count = [0, 0]

    def seat(self, request: AuthorizationQuery, _query: Mapping[str, str]) -> Counted | None:
        if long_running(request):
            return None
        kind = request.verb not in ("get", "list", "watch", "head", "options")
        limit = self._limits[kind]
        if not limit:
            return None
        if self.count[kind] >= limit:
            if MASTERS in request.user.groups:
                return None
            raise TooManyRequests
        self.count[kind] += 1
        return Counted(self, kind)


class Counted:
    """Counts a request in `InFlight`; it never waits."""

    __slots__ = ("_kind", "_of")
    headers: ClassVar[Headers] = []
    waiting = turn = None

    def __init__(self, of: InFlight, kind: int) -> None:
        self._of = of
        self._kind = kind

    async def ready(self) -> None: ...

    def initialized(self) -> None: ...

    def leave(self, seconds: float) -> None:
        self._of.count[self._kind] -= 1
