"""Faults of one server: applies the rules to requests and watches of clients.

Rules are evaluated in the order in which they were added. Every matching rule acts, until one ends the request.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
from collections import deque
from collections.abc import Callable, Iterator
from http import HTTPStatus

from kubist.api.application import API
from kubist.api.resources.context import Context
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.watch import Watcher
from kubist.base.hints import did_you_mean
from kubist.base.http.messages import Answer, HangUp, Response, Stream, StreamWriter
from kubist.model.meta import status, times
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.testbench.control_api.control_api import FAULT_HEADER, conflict
from kubist.testbench.control_api.field_types import Fields
from kubist.testbench.faults import stale_reads
from kubist.testbench.faults.fault import Fault
from kubist.testbench.faults.request import FaultRequest
from kubist.testbench.faults.rule import FaultRule, parse_rule, resource_version

CONTROL = "/kubist/v1/"
"""Paths on which no rule acts, so that a rule can always be removed."""
MOST_RULES = 1000
MOST_HELD = 1000
"""Maximum number of requests that may be delayed at the same time."""


class Faults:
    """All fault rules of a server."""

    def __init__(self, api: API, changed: Callable[[], None]) -> None:
        self._api = api
        self._changed = changed
        """Called when the first rule is added or the last one is removed."""
        self._faults: dict[str, Fault] = {}
        self._ids = itertools.count(1)
        self._waiting = 0
        self._unused: deque[Fault] = deque(maxlen=MOST_RULES)
        """Removed rules that never acted."""

    def __len__(self) -> int:
        return len(self._faults)

    def __iter__(self) -> Iterator[Fault]:
        return iter(list(self._faults.values()))

    def get(self, id_: str) -> Fault | None:
        return self._faults.get(id_)

    def take_unused(self, *, at_stop: bool) -> list[str]:
        """Removed rules that never acted, one line each. Each is returned once. With `at_stop`, rules that were not
        removed count, too."""
        faults = [*self._unused, *(fault for fault in self if at_stop and not fault.hits)]
        self._unused.clear()
        served = {resource.resource for resource in self._api.resources} if faults else set()
        return [fault.summary() + _unserved(fault, served) for fault in faults]

    async def add(self, spec: Object) -> Fault:
        """Adds a rule. Raises 422 for an invalid one and 409 if this server cannot apply it."""
        fields = Fields("Fault", spec)
        version = await self._stale_version(fields)
        rule = parse_rule(fields)
        if len(self._faults) >= MOST_RULES:
            conflict(f"this server has {MOST_RULES} fault rules, the most it can have")
        if rule.expire_history and not self._api.registry.store.local:
            conflict("history cannot be expired: the store is shared with other servers")
        fault = Fault(str(next(self._ids)), spec, rule, version)
        if rule.at_once:
            await self._act_aside(fault)
            fault.hits += not rule.on_requests
        self._faults[fault.id] = fault
        self._changed()
        if rule.on_requests and rule.on_watches:
            await self._act_on_open_watches(fault)
        return fault

    async def _stale_version(self, fields: Fields) -> int:
        """Resource version of stale reads: the given one, or the newest."""
        cache = self._api.registry.cache
        await cache.catch_up()
        stale_read = fields.peek("staleRead")
        version = resource_version(stale_read)
        if version is not None and version > cache.revision:
            fields.reject(
                "staleRead", stale_read, f"must not be newer than {cache.revision}, the newest version"
            )
        return version or cache.revision

    def remove(self, id_: str) -> Fault | None:
        """Removes a rule. Requests and events that it holds are released."""
        fault = self._faults.pop(id_, None)
        if fault is not None:
            fault.remove()
            self._restore_bookmarks(fault)
            if not fault.hits:
                self._unused.append(fault)
            self._changed()
        return fault

    def clear(self) -> None:
        for id_ in list(self._faults):
            self.remove(id_)

    def _restore_bookmarks(self, removed: Fault) -> None:
        others = [fault for fault in self if fault.rule.withhold_bookmarks]
        for watcher in removed.watchers:
            watcher.withholds_bookmarks = any(watcher in other.watchers for other in others)

    # Requests

    async def serve(self, ctx: Context) -> Answer:
        """Serves a request of a client with the faults that match it."""
        if ctx.info.path.startswith(CONTROL):
            return await API.serve(self._api, ctx)
        request = FaultRequest(self._api, ctx)
        acting: list[Fault] = []
        with contextlib.ExitStack() as reserved:
            for fault in self:
                if not await self._is_to_act(fault, request):
                    continue
                if fault.rule.on_watches:
                    fault.reserve()
                    reserved.callback(fault.unreserve)
                else:
                    fault.hit(ctx)
                acting.append(fault)
                await self._act_before(fault, request)
            return await self._serve_under(ctx, acting)

    async def _is_to_act(self, fault: Fault, request: FaultRequest) -> bool:
        """Counts a request for a rule. Returns whether the rule acts on it."""
        rule = fault.rule
        if not rule.on_requests or fault.is_used_up or not rule.is_plausible(request):
            return False
        if rule.spares_tests and request.is_of_test:
            fault.spared += 1
            return False
        if rule.stale_read is not None and not stale_reads.applies(request.ctx, fault.stale_version):
            return False
        return await rule.holds(request) and fault.counts()

    async def _act_before(self, fault: Fault, request: FaultRequest) -> None:
        """Effects before the request takes effect. Raises if the request ends here."""
        rule = fault.rule
        if rule.delay:
            await self._hold(fault, rule.delay)
        if not rule.at_once:
            await self._act_aside(fault)
        if rule.status is not None:
            raise _failure_error(rule.status, rule, request, fault.id)
        if rule.close == "before":
            raise HangUp

    async def _act_aside(self, fault: Fault) -> None:
        """Effects on the server, not on a request."""
        rule = fault.rule
        if rule.expire_history:
            await self._api.registry.cache.expire()
        if rule.take_lease:
            seconds = max(1, round(rule.lease_duration))
            await _take_lease(self._api, rule.namespace[0], rule.name[0], rule.take_lease, seconds)

    async def _hold(self, fault: Fault, seconds: float) -> None:
        """Delays a request, in real time, or until the rule is removed."""
        if self._waiting >= MOST_HELD:
            raise status.too_many_requests(f"fault rules delay {MOST_HELD} requests already", 1)
        self._waiting += 1
        try:
            await asyncio.wait_for(fault.removed.wait(), seconds)
        except TimeoutError:
            pass
        finally:
            self._waiting -= 1

    async def _serve_under(self, ctx: Context, acting: list[Fault]) -> Answer:
        """Serves a request, then acts on its response."""
        stale = next((fault.stale_version for fault in acting if fault.rule.stale_read is not None), 0)
        if stale and isinstance(ctx, ResourceRequest):
            stale_reads.make_stale(ctx, stale)
        try:
            answer = await API.serve(self._api, ctx)
        except status.APIError:
            await self._act_after(acting, None)
            raise
        watcher = getattr(answer.start, "__self__", None) if isinstance(answer, Stream) else None
        if isinstance(answer, Stream) and isinstance(watcher, Watcher):
            if stale:
                await stale_reads.begin_with_state(answer, watcher, stale)
            self._act_on_stream(answer, watcher, acting)
        try:
            await self._act_after(acting, answer)
        except HangUp:
            if isinstance(answer, Stream):
                answer.stopped()
            raise
        return answer

    async def _act_after(self, acting: list[Fault], answer: Answer | None) -> None:
        """Effects after the request took effect. `answer` is None if it failed."""
        for fault in acting:
            if fault.rule.delay_after:
                await self._hold(fault, fault.rule.delay_after)
        for fault in acting:
            rule = fault.rule
            if rule.close == "after":
                raise HangUp
            if rule.truncate is not None and isinstance(answer, Response):
                raise HangUp(answer, rule.truncate)

    # Watches

    def _act_on_stream(self, stream: Stream, watcher: Watcher, acting: list[Fault]) -> None:
        """Puts the faults on a new watch, before its first event."""
        faults = [fault for fault in acting if fault.rule.on_watches]
        if not faults:
            return
        begin, end = stream.start, stream.stopped
        waiting = list(faults)
        for fault in waiting:
            fault.reserve()

        def settle() -> None:
            while waiting:
                waiting.pop().unreserve()

        def start(writer: StreamWriter) -> None:
            settle()
            watcher.writer = writer
            for fault in faults:
                fault.act_on(watcher)
            begin(watcher.writer)

        def stopped() -> None:
            settle()
            end()

        stream.start, stream.stopped = start, stopped

    async def _act_on_open_watches(self, fault: Fault) -> None:
        """Puts a new rule on the watches that are already open, in the order of their paths."""
        watchers = [watcher for open_ in self._api.watchers.values() for watcher in open_]
        for watcher in sorted(watchers, key=_order):
            if await self._is_to_act(fault, FaultRequest(self._api, watcher.ctx)):
                fault.act_on(watcher)


def _unserved(fault: Fault, served: set[str]) -> str:
    """Names the resources of a rule that do not exist."""
    names = [pattern.resource for pattern in fault.rule.resource]
    unknown = [name for name in names if name not in served and "*" not in name]
    return "".join(f'; there is no resource "{name}"{did_you_mean(name, served)}' for name in unknown)


def _order(watcher: Watcher) -> tuple[str, ...]:
    ctx = watcher.ctx
    return ctx.info.path, ctx.request.query, ctx.user.name, ctx.request.headers.get("user-agent", "")


_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
_REASONS = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "Unauthorized"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    406: ("NotAcceptable", "only the following media types are accepted: application/json"),
    415: ("UnsupportedMediaType", "the body of the request was in an unknown format"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    500: ("InternalError", "Internal error occurred: injected fault"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "Timeout: request did not complete within the allotted timeout"),
}
"""Reason and message of codes that do not name the object."""


def _failure_error(code: int, rule: FaultRule, request: FaultRequest, id_: str) -> APIError:
    """Error that ends a request. Where the rule has no reason or message, it has those of the reference."""
    usual = _usual(code, request)
    details = dict(usual.details or {})
    headers = [pair for pair in usual.headers if pair[0] != "Retry-After"]
    if rule.retry_after:
        seconds = math.ceil(rule.retry_after)
        details["retryAfterSeconds"] = seconds
        headers.append(("Retry-After", str(seconds)))
    return APIError(
        code,
        rule.reason or usual.reason,
        rule.message or usual.message,
        details or usual.details,
        headers=[*headers, (FAULT_HEADER, id_)],
    )


def _usual(code: int, request: FaultRequest) -> APIError:
    """Error that the reference returns for a code and a request."""
    info, name = request.info, request.name
    group, resource = info.group, info.resource
    if code == 403:
        return status.forbidden(group, resource, name, "injected fault")
    if code == 404:
        return status.not_found(group, resource, name) if name else status.no_such_path()
    if code == 409 and info.verb == "create":
        return status.already_exists(group, resource, name)
    if code == 409:
        return status.conflict(group, resource, name, _MODIFIED)
    if code == 410:
        what = "watch" if info.verb == "watch" else "list"
        return status.gone(f"The resourceVersion for the provided {what} is too old.")
    if code == 413:
        return status.body_too_large()
    if code == 422:
        kind = request.resource.kind if request.resource is not None else resource
        return status.invalid(group, kind, name, [])
    if code in _REASONS:
        return APIError(code, *_REASONS[code])
    try:
        phrase = HTTPStatus(code).phrase
    except ValueError:
        phrase = f"status {code}"
    return APIError(code, "", phrase)


_LEASES = "coordination.k8s.io"


async def _take_lease(api: API, namespace: str, name: str, holder: str, duration: int) -> None:
    """Makes `holder` the holder of a Lease for `duration` seconds. Creates the Lease if it does not exist."""
    now = times.format_micro_time(*divmod(int(api.clock.now() * 1e6), 10**6))
    taken = {
        "holderIdentity": holder,
        "leaseDurationSeconds": duration,
        "acquireTime": now,
        "renewTime": now,
    }

    def change(lease: Object) -> Object:
        spec = lease.setdefault("spec", {})
        spec.update(taken)
        spec["leaseTransitions"] = spec.get("leaseTransitions", 0) + 1
        return lease

    try:
        await api.cluster.mutate("leases", name, namespace, change, group=_LEASES)
    except status.APIError as error:
        if error.code != 404:
            raise
        lease = {"metadata": {"name": name, "namespace": namespace}, "spec": {**taken, "leaseTransitions": 0}}
        await api.cluster.create("leases", lease, namespace, group=_LEASES)
