"""The running test: the clusters that take part in the report of its failure and in `kubist_unused_faults`.

A cluster joins when it starts, whether a fixture, a fork, `Cluster()` or a host created it. It leaves when it stops.
What the report needs is collected then, so nothing refers to a stopped server. Without the pytest plugin there is no
test.
"""

from __future__ import annotations

import asyncio
import weakref
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubist.server.server import Server

Section = tuple[str, str]
"""Title and text of a part of a report."""
TIMEOUT = 5.0
"""Seconds after which the report is left out, because the server does not respond."""
MOST_STOPPED = 10
"""Stopped clusters of a test that are reported: the last ones."""


class Member:
    """A cluster, from its start until the end of the test in which it stops."""

    def __init__(self, name: str, server: Server) -> None:
        self.name = name
        self.server = weakref.ref(server)
        self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        self.is_new = True
        """Whether the running test made the cluster."""
        self.sections: list[Section] = []
        """Report of a stopped cluster."""

    def running(self) -> tuple[asyncio.AbstractEventLoop, Server] | None:
        """Event loop and server. None if the cluster has stopped."""
        loop, server = self._loop, self.server()
        return (loop, server) if loop is not None and loop.is_running() and server is not None else None

    def stopped(self) -> None:
        self._loop = None

    def collect(self, server: Server) -> list[Section]:
        """Report of a running cluster, from its event loop. Empty if an earlier test made it and this one sent it no
        request."""
        # Saves start-up time: pytest loads this module even if no test uses a server.
        from kubist.testing import failure_report

        return failure_report.collect(server) if self.is_new or failure_report.has_requests(server) else []

    def report(self) -> list[Section]:
        """Report of the cluster, from another thread than that of its event loop."""
        running = self.running()
        if running is None:
            return self.sections
        loop, server = running

        async def collect() -> list[Section]:
            return self.collect(server)

        work = asyncio.run_coroutine_threadsafe(collect(), loop)
        try:
            return work.result(TIMEOUT)
        except TimeoutError:
            work.cancel()
            return [("kubist", f"the cluster did not respond within {TIMEOUT:g} seconds")]


class RunningTest:
    """The running test of a pytest session."""

    def __init__(self, *, has_report: bool) -> None:
        self._has_report = has_report
        """Whether failures are reported."""
        self._members: list[Member] = []
        self._can_fail = True
        """Whether the report of the test is still to be made."""
        self._unused: list[str] = []

    # Clusters

    def join(self, server: Server, name: str) -> None:
        """Adds a cluster that has started, from its event loop."""
        member = Member(name, server)
        self._members.append(member)
        if server.bench is not None:
            server.bench.before_stop = partial(self._leave, member)
            if self._has_report:
                server.bench.keep_requests()

    def _leave(self, member: Member) -> None:
        """Collects the report of a cluster that stops, from its event loop."""
        server = member.server()
        if server is not None and server.bench is not None:
            self._unused += server.bench.take_unused_faults(at_stop=True)
            if self._has_report and self._can_fail:
                member.sections = member.collect(server)
        member.stopped()
        stopped = [other for other in self._members if other.sections]
        for other in stopped[:-MOST_STOPPED]:
            other.sections = []

    # Tests

    def begin(self) -> None:
        """Begins a test: the report of the clusters that run begins here."""
        self._members = [member for member in self._members if member.running() is not None]
        self._unused, self._can_fail = [], True
        for member in self._members:
            member.is_new = False
            if self._has_report and (running := member.running()) is not None:
                loop, server = running
                if server.bench is not None:
                    loop.call_soon_threadsafe(server.bench.keep_requests)

    def sections(self) -> list[Section]:
        """Report of all clusters of the test, in the order of their starts."""
        if not self._has_report:
            return []
        reports = [(member.name, sections) for member in list(self._members) if (sections := member.report())]
        if len(reports) == 1:
            return reports[0][1]
        return [(f"{title} of {name}", text) for name, sections in reports for title, text in sections]

    def begin_teardown(self) -> None:
        """Ends the part of a test whose failure is reported."""
        self._can_fail = False

    def end(self) -> list[str]:
        """Ends a test. Fault rules that ended during the test and never acted, each in one line."""
        for member in self._members:
            member.sections = []
            if (running := member.running()) is not None and (bench := running[1].bench) is not None:
                self._unused += bench.take_unused_faults()
        return self._unused


current: RunningTest | None = None
"""The test that runs in this process. The pytest plugin sets it."""


def join(server: Server, name: str) -> None:
    """Lets a cluster that has started take part in the running test, from its event loop."""
    if current is not None:
        current.join(server, name)
