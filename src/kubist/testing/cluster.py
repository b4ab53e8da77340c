"""A cluster for a test: its own server, with helpers to load, get, wait for and delete objects."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack, overload

from kubist.model.meta.object import Object
from kubist.server.inprocess import Server
from kubist.testbench.control_api.control_api import TEST_AGENT
from kubist.testing import references, running_test, snapshot, users, waiting
from kubist.testing.clients import Clients
from kubist.testing.clock import ClusterClock
from kubist.testing.connections import Connections
from kubist.testing.errors import Refused, WebhookFailed
from kubist.testing.faults import ClusterFaults
from kubist.testing.objects import ObjectVerbs, blocking
from kubist.testing.references import Reference
from kubist.testing.snapshot import ClusterSnapshots, Snapshot
from kubist.testing.states import Until
from kubist.testing.states import parse as parse_state
from kubist.testing.users import ClusterUser, Rules
from kubist.testing.waiting import Wait
from kubist.testing.workloads import SimulatedWorkloads

if TYPE_CHECKING:
    # Saves start-up time: few clusters record or replay requests.
    from kubist.testbench.replay.replay import Report
    from kubist.testing.hosted_clusters import HostedClusters
    from kubist.testing.recording import Recording, Texts
    from kubist.testing.replaying import Source

    # Saves start-up time: only tests with webhooks use it.
    from kubist.testing.webhooks.admission import AdmissionHook, AdmissionOptions
    from kubist.testing.webhooks.authorizer import AuthorizerHook
    from kubist.testing.webhooks.conversion import ConversionHook
    from kubist.testing.webhooks.hook import Function
    from kubist.testing.webhooks.webhooks import Webhooks
import asyncio
import sys
from typing import TypeVar

from kubist.base.offload import on_loop

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

__all__ = ["Cluster", "Refused"]

Objects = list[Object]

LINES = ("/kubist/v1/recordings/", "/kubist/v1/requests")
"""Paths whose response has a JSON object in each line."""


class Cluster(ObjectVerbs, SimulatedWorkloads, Server):
    """An empty Kubernetes API server. It runs in its own thread, also in an `async with` block."""

    _prefix = ""
    """Path of the server's API on its port."""

    @property
    def _cluster(self) -> Cluster:
        return self

    def __repr__(self) -> str:
        return f"<cluster {self.url}>" if self.loop is not None else "<cluster, not running>"

    async def __aenter__(self) -> Self:
        await _in_thread(self.start)
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            self.stop()
        except WebhookFailed as failed:
            if not isinstance(exception[1], BaseException):
                raise
            exception[1].add_note(str(failed))

    async def __aexit__(self, *exception: object) -> None:
        await _in_thread(partial(self.__exit__, *exception))

    @cached_property
    def clients(self) -> Clients:
        """Clients of the installed libraries: `.kubernetes`, `.lightkube`, `.kr8s`, `.pykube`."""
        return Clients(self)

    def stop(self) -> None:
        """Stops the server. Raises WebhookFailed if the function of a webhook failed and the test did not notice."""
        clients: Clients | None = self.__dict__.pop("clients", None)
        if clients is not None:
            clients.close()
        for close in self.__dict__.pop("_closing", ()):
            close()
        super().stop()
        self.forks[:] = [fork for fork in self.forks if fork is not self]
        webhooks: Webhooks | None = self.__dict__.pop("webhooks", None)
        if webhooks is not None and (unread := webhooks.take_unread_errors()):
            raise WebhookFailed(unread)

    @cached_property
    def forks(self) -> list[Cluster]:
        """Running forks of this cluster and of its forks."""
        return []

    @blocking
    def fork(self) -> Self:
        """A second, independent cluster with the same content. It shares all bytes with this one. The fixture `cluster`
        stops it after the test; elsewhere use `with cluster.fork() as other:`."""
        made = super().fork()
        made.__dict__["forks"] = self.forks
        self.forks.append(made)
        return made

    async def start_here(self) -> None:
        """Starts the server in the running event loop. Raises `kubist.errors.StartError`."""
        await super().start_here()
        running_test.join(self.inner, self.url)

    async def stop_here(self, grace: float = 1.0) -> None:
        connections: Connections | None = self.__dict__.pop("_connections", None)
        if connections is not None:
            connections.close()
        await super().stop_here(grace)

    @cached_property
    def _connections(self) -> Connections:
        # setdefault: several first threads at the same time must get the same object.
        made: Connections = self.__dict__.setdefault("_connections", Connections(self.ca, self.url))
        return made

    @blocking
    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        *,
        token: str = "",
    ) -> Any:
        """Sends a request and returns the JSON of the response. Raises `Refused`. Without a token of another user, the
        administrator sends it."""
        headers = {"Authorization": f"Bearer {token or self.token}", "Content-Type": content_type}
        headers["User-Agent"] = TEST_AGENT
        # Not in ASCII, because YAML, which applied objects are read as, has no escapes for characters such as emoji.
        sent = (
            json.dumps(body, ensure_ascii=False).encode(errors="surrogatepass") if body is not None else None
        )
        code, raw, fault = self._connections.send(method, self._prefix + path, sent, headers)
        if code < 400 and method == "GET" and path.startswith(LINES):
            return [json.loads(line) for line in raw.splitlines()]
        answer = json.loads(raw) if raw[:1] in (b"{", b"[") else raw.decode()
        if code >= 400:
            raise Refused(code, answer if isinstance(answer, dict) else {"message": answer}, fault)
        return answer

    @overload
    def wait(
        self,
        reference: Reference,
        until: Until = "Ready",
        *,
        count: None = None,
        stable_for: float = 0.0,
        namespace: str = "default",
        timeout: float = 10.0,
    ) -> Object: ...

    @overload
    def wait(
        self,
        reference: str,
        until: Until = "Ready",
        *,
        count: int,
        stable_for: float = 0.0,
        namespace: str | None = "default",
        timeout: float = 10.0,
    ) -> Objects: ...

    @blocking
    def wait(
        self,
        reference: Reference,
        until: Until = "Ready",
        *,
        count: int | None = None,
        stable_for: float = 0.0,
        namespace: str | None = "default",
        timeout: float = 10.0,
    ) -> Object | Objects:
        """Waits until an object is in a state, and returns it.

        A state is a condition (`Ready`, `Ready=False`), a field (`jsonpath={.status.phase}=Running`; without a value:
        the field exists), `create`, `delete`, or a function that gets the object and returns true. With `count` it
        waits until there are exactly that many objects, all in the state: `wait("pods -l app=web", "Ready", count=3)`.
        `stable_for` is the time in seconds for which the state must last. Raises TimeoutError after `timeout` seconds.
        """
        wait = Wait(parse_state(until), timeout, stable_for)
        is_selection = references.is_selection(reference)
        waiting.check_count(reference, count, is_selection, wait.state)
        resources = self.inner.resources
        try:
            if count is None:
                resource, where, name = references.locate(resources, reference, namespace or "")
                return self.run(waiting.wait_one(self.inner, resource, where, name, wait))
            selection = references.select(str(reference), namespace)
            resource = references.resource_of(resources, selection.kind)
            return self.run(waiting.wait_many(self.inner, resource, selection, count, wait))
        except (TimeoutError, RuntimeError) as error:
            raise error.with_traceback(None) from None

    @overload
    async def wait_async(
        self,
        reference: Reference,
        until: Until = "Ready",
        *,
        count: None = None,
        stable_for: float = 0.0,
        namespace: str = "default",
        timeout: float = 10.0,
    ) -> Object: ...

    @overload
    async def wait_async(
        self,
        reference: str,
        until: Until = "Ready",
        *,
        count: int,
        stable_for: float = 0.0,
        namespace: str | None = "default",
        timeout: float = 10.0,
    ) -> Objects: ...

    async def wait_async(self, reference: Reference, until: Until = "Ready", **options: Any) -> Any:
        """`wait` for coroutine tests, with asyncio and with trio."""
        return await _in_thread(partial(self.wait, reference, until, **options))

    @blocking
    def snapshot(self) -> Snapshot:
        """A copy of all objects, for `restore`."""
        return self.run(snapshot.take(self.inner.registry))

    @blocking
    def restore(self, taken: Snapshot | str | Path) -> None:
        """Restores a snapshot, or a file of `kubist backup` or of a named snapshot. Watchers see the changes, and
        resource versions keep increasing."""
        self.run(snapshot.restore(self.inner.registry, taken))

    @cached_property
    def snapshots(self) -> ClusterSnapshots:
        """Named snapshots on disk: `cluster.snapshots.save("before")`, `.restore("before")`."""
        return ClusterSnapshots(self.request)

    def user(
        self, name: str, *, groups: Sequence[str] = (), rules: Rules = (), namespace: str = ""
    ) -> ClusterUser:
        """A user with RBAC rules: for one namespace, or for the whole cluster."""
        return users.make_user(self, name, groups, rules, namespace)

    def service_account(self, name: str, *, namespace: str = "default", rules: Rules = ()) -> ClusterUser:
        """A ServiceAccount with RBAC rules for the whole cluster, and a token of it."""
        return users.make_service_account(self, name, namespace, rules)

    @cached_property
    def webhooks(self) -> Webhooks:
        """Registered webhooks and authorizers of this cluster."""
        # Saves start-up time: only tests with webhooks use it.
        from kubist.testing.webhooks.webhooks import Webhooks

        return Webhooks(self)

    def mutating_webhook(
        self, *resources: str, **options: Unpack[AdmissionOptions]
    ) -> Callable[[Function], AdmissionHook]:
        """Decorator: the function changes objects of these resources, such as `pods` or `deployments.apps`.

        It gets the object and, if it has a second argument, the request. It changes the object in place, or returns the
        changed object or a JSON patch.
        """
        return self.webhooks.add_mutating(resources, options)

    def validating_webhook(
        self, *resources: str, **options: Unpack[AdmissionOptions]
    ) -> Callable[[Function], AdmissionHook]:
        """Decorator: the function validates objects of these resources, such as `pods` or `deployments.apps`.

        It gets the object and, if it has a second argument, the request. It returns False or a message to deny.
        """
        return self.webhooks.add_validating(resources, options)

    def conversion_webhook(self, crd: str) -> Callable[[Function], ConversionHook]:
        """Decorator: the function gets an object of the CRD and an apiVersion, and returns the converted object."""
        return self.webhooks.add_conversion(crd)

    def authorizer(self, function: Function) -> AuthorizerHook:
        """Decorator: the function allows (True) or denies (False) a request, or has no opinion (None).

        It is asked before RBAC, for all users except those in system:masters.
        """
        return self.webhooks.add_authorizer(function)

    def close_later(self, close: Callable[[], None]) -> None:
        """Calls back when the cluster stops."""
        self.__dict__.setdefault("_closing", []).append(close)

    @cached_property
    def clock(self) -> ClusterClock:
        """The time on this cluster: `cluster.clock.advance("1h")`."""
        return ClusterClock(self.request)

    @cached_property
    def faults(self) -> ClusterFaults:
        """Injected faults: `cluster.faults.add(verb="update", resource="deployments", status=409, times=2)`."""
        return ClusterFaults(self.request)

    @cached_property
    def clusters(self) -> HostedClusters:
        """Further clusters on the port of a cluster with `clusters=True`: `cluster.clusters.create("team-a")`."""
        # Saves start-up time: few tests use it.
        from kubist.testing.hosted_clusters import HostedClusters

        return HostedClusters(self)

    def recording(
        self,
        *,
        verb: Texts | None = None,
        resource: Texts | None = None,
        namespace: Texts | None = None,
        name: Texts | None = None,
        user: Texts | None = None,
        agent: Texts | None = None,
        max_entries: int | None = None,
        max_bytes: int | None = None,
    ) -> Recording:
        """Records the requests of all clients: `with cluster.recording() as requests:`. The arguments restrict it."""
        arguments = {key: value for key, value in locals().items() if key != "self"}
        # Saves start-up time: most tests record nothing.
        from kubist.testing import recording

        return recording.Recording(self, recording.spec_of(arguments))

    def replay(self, source: Source, *, impersonate: bool = False) -> Report:
        """Sends the requests of a recording or of an audit log to this cluster, and compares the statuses."""
        # Saves start-up time: few tests replay requests.
        from kubist.testing import replaying

        return replaying.replay_to(self, source, impersonate=impersonate)


T = TypeVar("T")


async def _in_thread(call: Callable[[], T]) -> T:
    """Result of a call that blocks, without blocking the event loop of the caller."""
    trio: Any = sys.modules.get("trio")
    if trio is not None and on_loop() is None:
        return await trio.to_thread.run_sync(call, abandon_on_cancel=True)  # type: ignore[no-any-return]
    return await asyncio.to_thread(call)
