"""Application: authenticates and authorizes every request, then calls its verb.

It adds the common response headers. Errors become Status objects in the client's representation.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable

from kubist.api import known_paths, logs
from kubist.api import request as requests
from kubist.api.admission.chain import Admission
from kubist.api.aggregation.aggregation import Aggregation
from kubist.api.config import Config
from kubist.api.discovery import documents, zpages
from kubist.api.discovery.metrics import Metrics, metrics_page
from kubist.api.discovery.paths import Paths
from kubist.api.filters import from_config
from kubist.api.filters.authentication.authentication import Authentication
from kubist.api.filters.authorization.authorization import Authorization, AuthorizationFailed, Verdict
from kubist.api.filters.authorization.query import AuthorizationQuery
from kubist.api.filters.flowcontrol.flowcontrol import FlowControl
from kubist.api.filters.flowcontrol.seats import TOO_MANY, TooManyRequests
from kubist.api.filters.handler_chain import HandlerChain
from kubist.api.logs import CURRENT
from kubist.api.object_client import ObjectClient
from kubist.api.object_store.registry import Registry
from kubist.api.representation.status import render_status
from kubist.api.resources import routes
from kubist.api.resources.context import Context, Kubelet, User
from kubist.api.resources.resource import Resources
from kubist.api.verbs.connect import connect, way_through
from kubist.api.verbs.create import create
from kubist.api.verbs.delete import delete
from kubist.api.verbs.deletecollection import deletecollection
from kubist.api.verbs.get import get
from kubist.api.verbs.list import list_
from kubist.api.verbs.patch import APPLY, patch
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.update import update
from kubist.api.verbs.watch import Watcher, watch
from kubist.base.clock import SYSTEM, Clock
from kubist.base.http.messages import Answer, HangUp, Request, Response, Stream
from kubist.base.jsontext.quoting import quoted
from kubist.base.offload import LONG, away
from kubist.model import feature_gates
from kubist.model.meta import durations, status
from kubist.storage.store import Unavailable

log = logging.getLogger("kubist.api")

VERBS: dict[str, Callable[[ResourceRequest], Awaitable[Answer]]] = {
    "create": create,
    "delete": delete,
    "deletecollection": deletecollection,
    "get": get,
    "list": list_,
    "patch": patch,
    "update": update,
    "watch": watch,
}
OWN_FAULTS = ("InternalError", "ServiceUnavailable")
"""Status reasons of errors that are the server's fault, not the client's. They are logged."""
NOT_FOUND = Response(
    404,
    [(b"Content-Type", b"text/plain; charset=utf-8"), (b"X-Content-Type-Options", b"nosniff")],
    b"404 page not found\n",
)
READING = frozenset(("GET", "HEAD", "OPTIONS"))
UNCACHED = (b"Cache-Control", b"no-cache, private")


class API:
    """Application of one server."""

    def __init__(
        self,
        config: Config,
        registry: Registry,
        authentication: Authentication,
        authorization: Authorization,
        admission: Admission,
        paths: Paths,
        *,
        clock: Clock = SYSTEM,
        chores: bool = True,
    ) -> None:
        self.config = config
        self.registry = registry
        self.resources: Resources = registry.resources
        self.authentication = authentication
        self.authorization = authorization
        limits = from_config.limits(config, registry)
        self.handler_chain = HandlerChain(
            authentication,
            authorization,
            limits,
            from_config.audit(config),
            constrained_impersonation=feature_gates.enabled(config.feature_gates, "ConstrainedImpersonation"),
        )
        self.admission = admission
        self.kubelet: Kubelet | None = None
        self.paths = paths
        self.chores = chores
        """Whether this process runs the tasks that only one process of a server may run (control loops, CRDs,
        bootstrap, repairs)."""
        self.clock = clock
        self.cluster = ObjectClient(self)
        self.aggregation = Aggregation(config, registry, self.cluster, chores=chores)
        paths.merge(self.aggregation)
        self.watchers: dict[str, set[Watcher]] = {}
        """Open watches by collection."""
        self._logs_all = logs.access.isEnabledFor(logging.INFO)
        self._seldom = logs.Seldom()
        self.metrics = Metrics(registry, self.watchers, admission.durations)
        self.metrics.flow_control = limits if isinstance(limits, FlowControl) else None
        self._inflight = self.metrics.inflight
        paths.others["/metrics"] = self.metrics.respond
        paths.others["/metrics/slis"] = lambda request: metrics_page(
            request, paths.health.samples(), self.metrics.started
        )
        paths.others |= zpages.pages(config)
        paths.set_verbosity = self._set_verbosity
        registry.cache.on_reset = self._end_watches

    async def __call__(self, request: Request) -> Answer:
        info, query = known_paths.read(request.method, request.path, request.query)
        made = ResourceRequest if info.is_resource else Context
        ctx = made(self, request, info, query)
        CURRENT.set(ctx)
        began = time.perf_counter()
        changes = request.method not in READING
        self._inflight[changes] += 1
        try:
            answer: Answer
            if info.malformed:
                request.retires = True
                answer = malformed_page(request, info)
            else:
                await self.handler_chain.run(ctx)
                answer = await self.serve(ctx)
        except HangUp:
            raise
        except status.APIError as error:
            answer = await self._failure(request, error)
        except AuthorizationFailed as error:
            log.error("%s %s could not be authorized: %s", request.method, request.path, error)
            answer = failure_page(requests.uri(request.path, request.query), str(error))
        except TooManyRequests:
            answer = TOO_MANY
        except Unavailable as error:
            answer = await self._failure(request, status.unavailable(str(error)))
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            answer = await self._failure(request, status.internal_error("the request failed unexpectedly"))
        finally:
            self._inflight[changes] -= 1
            seconds = time.perf_counter() - began
            if ctx.seat is not None:
                ctx.seat.leave(seconds)
        dry_run = "dryRun=All" in request.query
        applied = request.headers.get("content-type") == APPLY
        body = None if isinstance(answer, Stream) else answer.body
        self.metrics.count(info, answer.status, seconds, dry_run, applied=applied, body=body)
        if self._logs_all or seconds - ctx.requested_wait > logs.SLOW_SECONDS:
            self._log(ctx, answer, began, seconds)
        ctx.is_answered = True
        return self._finish(answer, ctx)

    def _log(self, ctx: Context, answer: Answer, began: float, seconds: float) -> None:
        """Logs the request. With request logging on, a stream is logged when it ends; otherwise only slow requests are
        logged. A stream is slow if it started late, however long it lasts."""
        slow = seconds - ctx.requested_wait > logs.SLOW_SECONDS
        if not isinstance(answer, Stream) or not self._logs_all:
            logs.answered(ctx, answer.status, seconds, slow=slow)
            return
        stopped, code = answer.stopped, answer.status

        def ended() -> None:
            logs.answered(ctx, code, time.perf_counter() - began, slow=slow)
            stopped()

        answer.stopped = ended

    def _set_verbosity(self, verbosity: int) -> None:
        logs.set_verbosity(verbosity)
        self._logs_all = verbosity >= logs.ACCESS_VERBOSITY

    def _end_watches(self) -> None:
        """Ends all watches because changes were missed, so that clients list again."""
        for watcher in [watcher for open_ in self.watchers.values() for watcher in open_]:
            watcher.end()

    async def serve(self, ctx: Context) -> Answer:
        """Response to an authorized request. The test bench replaces this method while it injects faults."""
        request, info, query = ctx.request, ctx.info, ctx.query
        if query:
            check_timeout(query)
        if not info.group and info.path.startswith("/apis//"):
            return NOT_FOUND
        if self.aggregation.backends and (backend := self.aggregation.backend(info.path)) is not None:
            return await self.aggregation.answer(backend, request, info, ctx.user)
        if isinstance(ctx, ResourceRequest):
            return await self._resource(ctx)
        return await self.paths.answer(request, info, ctx.user, query)

    async def _resource(self, ctx: ResourceRequest) -> Answer:
        request, info = ctx.request, ctx.info
        served = self.resources.of(info.group, info.version)
        if served is None:
            if info.group and documents.is_custom(info.group, self.resources):
                return NOT_FOUND
            raise status.no_such_path()
        resource = served.get(info.resource)
        if resource is None:
            if self.resources.is_custom(info.group, info.version):
                return NOT_FOUND
            raise status.no_such_path()
        if not resource.custom:
            routes.check(info, resource, request.method)
        elif not routes.in_custom_scope(info, resource):
            return NOT_FOUND
        if resource.strategy.deprecation:
            ctx.warnings.append(resource.strategy.deprecation)
        if resource.custom:
            routes.check_custom(info, resource)
        if ctx.trail is not None:
            ctx.trail.type = {"kind": resource.kind, "apiVersion": resource.api_version}
        ctx.set_resource(resource)
        if request.body_too_large:
            raise status.body_too_large()
        ctx.long = len(request.body) > LONG
        if info.subresource and (way := way_through(ctx)) is not None:
            return await connect(ctx, way)
        return await VERBS[info.verb](ctx)

    async def authorize(
        self,
        user: User,
        verb: str,
        *,
        group: str = "",
        version: str = "*",
        resource: str = "",
        subresource: str = "",
        namespace: str = "",
        name: str = "",
        path: str = "",
        field_selector: str = "",
        label_selector: str = "",
        verdicts: list[Verdict] | None = None,
    ) -> tuple[bool, str]:
        """Authorize an action for a kind or an admission plugin: (allowed, reason). The whole verdict is added to
        `verdicts`."""
        what = (group, version, resource, subresource, namespace, name, field_selector, label_selector)
        verdict = await self.authorization.verdict(AuthorizationQuery(user, verb, path, not path, *what))
        if verdicts is not None:
            verdicts.append(verdict)
        return verdict.allowed, verdict.reason

    async def _failure(self, request: Request, error: status.APIError) -> Response:
        """Response for an error: a Status in the representation that the client accepts, otherwise JSON."""
        if error.reason in OWN_FAULTS and self._seldom.may(error.message):
            log.warning("responded %d: %.500s", error.code, error.message)
        long = len(error.message) > LONG
        body, content_type = await away(long, render_status, request, error.status())
        headers = [(b"Content-Type", content_type.encode())]
        headers += [(name.encode(), value.encode()) for name, value in error.headers]
        return Response(error.code, headers, body)

    def _finish(self, answer: Answer, ctx: Context) -> Answer:
        headers = [
            (b"Audit-Id", ctx.audit_id.encode("latin-1", "replace")),
            *ctx.response_headers,
            *answer.headers,
        ]
        for name, _ in answer.headers:
            if name == b"Cache-Control":
                break
        else:
            headers.append(UNCACHED)
        if ctx.trail is not None:
            ctx.trail.answered(answer)
        if ctx.warnings:
            headers += [(b"Warning", b'299 - "%b"' % escaped(text)) for text in fitting(ctx.warnings)]
        if isinstance(answer, Stream):
            answer.headers = headers
            return answer
        return Response(answer.status, headers, answer.body)


_WARNINGS_TOTAL = 4096
_WARNING_CUT = 256


def fitting(warnings: list[str]) -> list[str]:
    """Warnings that fit in a response. If they are too long in total, each is truncated to _WARNING_CUT characters."""
    if sum(map(len, warnings)) <= _WARNINGS_TOTAL:
        return warnings
    cut: list[str] = []
    whole = short = 0
    for text in warnings:
        if whole > _WARNINGS_TOTAL and short >= _WARNINGS_TOTAL:
            break
        cut.append(text[:_WARNING_CUT])
        whole += len(text)
        short += len(cut[-1])
    return cut


def escaped(text: str) -> bytes:
    """Text of a warning, escaped for a quoted string."""
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return "".join(char if char.isprintable() else " " for char in text).encode()


def failure_page(uri: str, why: str) -> Response:
    """Plain-text 500 for a request that fails before its resource is known or authorized."""
    text = f"Internal Server Error: {quoted(uri)}: {why}"
    for char, escape in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(char, escape)
    return Response(500, NOT_FOUND.headers, f"{text}\n".encode())


_LONGEST_URI = 8192
"""Maximum number of URI characters on an error page, which contains the URI twice, escaped."""


def malformed_page(request: Request, info: requests.RequestInfo) -> Response:
    """Response to a path that starts like a resource path but names no resource."""
    uri = requests.uri(info.path, request.query)[:_LONGEST_URI]
    why = f"unable to determine kind and namespace from url, {uri}"
    return failure_page(uri, f"failed to create RequestInfo: {why}")


def check_timeout(query: dict[str, str]) -> None:
    """Rejects an invalid `timeout` parameter."""
    text = query.get("timeout")
    if not text:
        return
    try:
        durations.parse(text)
    except ValueError as error:
        raise status.bad_request(f"invalid timeout specified in the request URL - {error}") from None
