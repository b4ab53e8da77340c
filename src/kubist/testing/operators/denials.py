"""Requests that the server has forbidden since an operator started, for its errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.testbench.control_api.control_api import TEST_AGENT
from kubist.testing.recording import RecordedRequest

if TYPE_CHECKING:
    from kubist.testing.cluster import Cluster

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

MOST_DENIALS = 10
"""Maximum number of different requests that an error shows."""
FORBIDDEN = 403


class Denials:
    """Forbidden requests from now on. Those of the test's own helpers are left out."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._first = cluster.run(self._begin())

    async def _begin(self) -> int:
        bench = self._cluster.inner.bench
        return bench.recorder.mark() if bench is not None else 0

    async def _read(self) -> list[RecordedRequest]:
        bench = self._cluster.inner.bench
        requests = bench.recorder.after(self._first) if bench is not None else []
        return [
            RecordedRequest(recorded.state())
            for recorded in requests
            if recorded.status == FORBIDDEN and not recorded.user_agent.startswith(TEST_AGENT)
        ]

    def text(self) -> str:
        """Lines with verb, resource, user and message. Empty if nothing was forbidden."""
        if self._cluster.loop is None:
            return ""
        counts: dict[tuple[str, str], int] = {}
        for request in self._cluster.run(self._read()):
            what = f"{request.verb} {request.target}, by {request.user or 'nobody'}"
            message = str((request.response or {}).get("message", ""))
            counts[what, message] = counts.get((what, message), 0) + 1
        if not counts:
            return ""
        lines = [
            f"  {what}{f', {count} times' if count > 1 else ''}: {message}"
            for (what, message), count in counts.items()
        ]
        more = [f"  … and {len(lines) - MOST_DENIALS} more"] if len(lines) > MOST_DENIALS else []
        return "\n".join(["The server forbade (403):", *lines[:MOST_DENIALS], *more])
