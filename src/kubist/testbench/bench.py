"""The test bench of one server."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kubist.api.application import API
from kubist.base.clock import CURRENT
from kubist.base.http.messages import Answer, Application, Request
from kubist.model.meta.object import Object
from kubist.testbench.clock.control import ClockControl
from kubist.testbench.clock.movable import MovableClock
from kubist.testbench.control_api.control_api import Call, ControlAPI, Operation, conflict
from kubist.testbench.faults.api import FaultsAPI
from kubist.testbench.recording.api import RecordingsAPI
from kubist.testbench.snapshots.api import SnapshotsAPI
from kubist.testbench.users.authorizers import Authorizers
from kubist.testbench.users.service_accounts import ServiceAccounts
from kubist.testbench.users.users import Users

if TYPE_CHECKING:
    from kubist.testbench.clock.real_time_certificates import RealTimeCertificates
    from kubist.testbench.faults.injection import Faults
    from kubist.testbench.recording.capture import Recorder
    from kubist.testbench.snapshots.snapshots import Snapshots


class Bench:
    """Control over one server. While nothing is in use, requests go straight to the application."""

    def __init__(self, api: API, switch: Callable[[Application | None], None]) -> None:
        """`switch` passes requests to another application; None for the server's own."""
        assert isinstance(api.clock, MovableClock)
        self._api = api
        self._switch = switch
        self.clock = api.clock
        self.control = ControlAPI()
        self.clock_control = ClockControl(self.clock, api.registry.store, self._clock_changed)
        self.clock_control.register(self.control)
        self._real_time: RealTimeCertificates | None = None
        self._authorizers = Authorizers(api)
        self._authorizers.register(self.control)
        self.users = Users(api)
        self.users.register(self.control)
        ServiceAccounts(api).register(self.control)
        self._register_workloads()
        self._faults: Faults | None = None
        FaultsAPI(lambda: self.faults).register(self.control)
        self._recorder: Recorder | None = None
        RecordingsAPI(api, lambda: self.recorder).register(self.control)
        self._snapshots: Snapshots | None = None
        self.before_stop: Callable[[], None] | None = None
        """Called when the server begins to stop, before everything is cleared."""
        SnapshotsAPI(lambda: self.snapshots).register(self.control)
        api.paths.control = self.control.answer

    def _register_workloads(self) -> None:
        config = self._api.config
        if config.workloads or config.simulated_nodes:
            # Saves start-up time: few servers simulate workloads.
            from kubist.testbench.pod_operations import Workloads

            Workloads(self._api).register(self.control)
        else:
            for path in ("pods/{operation}", "nodes/{operation}"):
                self.control.add(Operation("POST", path, _refuse_simulation))

    @property
    def faults(self) -> Faults:
        """Fault rules of this server."""
        if self._faults is None:
            # Saves start-up time: most servers get no rule.
            from kubist.testbench.faults.injection import Faults

            self._faults = Faults(self._api, self.changed)
        return self._faults

    @property
    def recorder(self) -> Recorder:
        """Recordings of this server."""
        if self._recorder is None:
            # Saves start-up time: most servers record nothing.
            from kubist.testbench.recording.capture import Recorder

            self._recorder = Recorder(self._api, self.changed)
        return self._recorder

    @property
    def snapshots(self) -> Snapshots:
        """Named snapshots of this server."""
        if self._snapshots is None:
            # Saves start-up time: most servers save nothing, and a server in memory needs no SQLite.
            from kubist.testbench.snapshots.snapshots import Snapshots

            self._snapshots = Snapshots(self._api.registry, self._api.config.data_dir)
        return self._snapshots

    def keep_requests(self) -> None:
        """Keeps recent requests until the server stops, for the report of a test that begins here."""
        self.recorder.begin_report()

    def take_unused_faults(self, *, at_stop: bool = False) -> list[str]:
        """Removed fault rules that never acted, one line each. Each is returned once. With `at_stop`, rules that were
        not removed count, too."""
        return self._faults.take_unused(at_stop=at_stop) if self._faults is not None else []

    @property
    def is_in_use(self) -> bool:
        """Whether the test bench holds state that ends with the server."""
        recorder = self._recorder
        is_recording = recorder is not None and recorder.is_in_use
        return self.clock.is_moved or is_recording or any((self._faults, self.users, self._authorizers))

    def continue_from(self, other: Bench) -> None:
        """Takes over the time and the users of another server, before this server starts. Its faults and recordings
        stay with it."""
        if other.clock.is_moved:
            self.start_clock(other.clock.now(), other.clock.speed)
        self.users.add_from(other.users)

    def start_clock(self, now: float, speed: float) -> None:
        """Moves the clock before the server starts."""
        self.clock.move(now, speed)
        self._check_dates_again()

    def _clock_changed(self) -> None:
        self._check_dates_again()
        self.changed()

    def _check_dates_again(self) -> None:
        """Lets authentication follow the clock after it was moved or reset."""
        authentication = self._api.authentication
        if self._real_time is not None and not self.clock.is_moved:
            authentication.requests.remove(self._real_time)
            self._real_time = None
        elif self._real_time is None and self.clock.is_moved and self._api.config.client_ca_file:
            # Saves start-up time: most tests move no clock.
            from kubist.testbench.clock.real_time_certificates import RealTimeCertificates

            self._real_time = RealTimeCertificates(self._api.config)
            authentication.requests.insert(0, self._real_time)
        authentication.discard_verdicts()

    def changed(self) -> None:
        """Intercepts the requests if something is in use."""
        application: Application | None = self._application if self.clock.is_moved else None
        if self._recorder:
            application = self._recorder.around(application or self._api)
        self._switch(application)
        if self._faults:
            self._api.serve = self._faults.serve  # type: ignore[method-assign]
        elif "serve" in vars(self._api):
            del self._api.serve

    async def _application(self, request: Request) -> Answer:
        CURRENT.set(self.clock)
        return await self._api(request)

    def release(self) -> None:
        """Ends all faults and recordings, so that no request or watch waits while the server stops."""
        if self.before_stop is not None:
            self.before_stop()
            self.before_stop = None
        if self._faults is not None:
            self._faults.clear()
        if self._recorder is not None:
            self._recorder.clear()

    def close(self) -> None:
        self.clock.close()
        if self._snapshots is not None:
            self._snapshots.close()


async def _refuse_simulation(_: Call) -> Object:
    conflict(
        "this server simulates no pods and nodes: start it with --workloads, or workloads=True in a test"
    )
