"""Handler chain of every request: authentication, impersonation, flow control, authorization; and its audit events."""

from __future__ import annotations

from typing import Protocol

from kubist.filters.audit import Audit, Trail
from kubist.filters.authentication import ANONYMOUS, UNAUTHENTICATED, Authentication
from kubist.filters.authorization import Authorization, AuthorizationFailed
from kubist.filters.authorization_query import AuthorizationQuery, attributes
from kubist.filters.flowcontrol import Counted, Seat
from kubist.filters.impersonation import Impersonation, wanted_user
from kubist.http.messages import Answer, Headers, Request, Stream
from kubist.meta import status
from kubist.meta.uids import new_uid
from kubist.request import RequestInfo
from kubist.resources.context import User

NOBODY = User("")
AUDIT_ID_LIMIT = 1024
"""Maximum length in characters of a client's Audit-Id in the audit log and the response."""


class Limits(Protocol):
    """Flow control: `kubist.filters.flowcontrol`."""

    def seat(self, asked: AuthorizationQuery) -> Seat | Counted | None: ...


class Passage:
    """State of one request in the handler chain: user, warnings, extra response headers, seat, audit trail."""

    __slots__ = ("audit_id", "done", "headers", "info", "request", "seat", "trail", "user", "warnings")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.user = ""
        self.done = False
        self.audit_id = request.headers.get("audit-id", "")[:AUDIT_ID_LIMIT]
        self.info: RequestInfo | None = None
        self.warnings: list[str] = []
        self.headers: Headers = []
        self.seat: Seat | Counted | None = None
        self.trail: Trail | None = None

    def identify(self) -> str:
        """The audit ID; generated on first use. The response carries it too."""
        self.audit_id = self.audit_id or new_uid()
        return self.audit_id

    def leave(self) -> None:
        if self.seat is not None:
            self.seat.leave()

    def answered(self, answer: Answer) -> None:
        """Completes the audit trail: now, or when the stream ends."""
        trail = self.trail
        if trail is None:
            return
        if not isinstance(answer, Stream):
            trail.complete(answer)
            return
        trail.started(answer)
        stopped = answer.stopped

        def ended() -> None:
            trail.complete(None)
            stopped()

        answer.stopped = ended


class Gate:
    """Runs the filters in order."""

    def __init__(
        self,
        authentication: Authentication,
        authorization: Authorization,
        limits: Limits | None = None,
        audit: Audit | None = None,
        *,
        constrained_impersonation: bool = True,
    ) -> None:
        self._authentication = authentication
        self._authorization = authorization
        self._impersonation = Impersonation(authorization.authorize, constrained=constrained_impersonation)
        self._limits = limits
        self.audit = audit

    async def enter(self, request: Request, info: RequestInfo, passage: Passage) -> User:
        """Effective user of the request. Raises APIError, TooManyRequests or AuthorizationFailed if the
        request is rejected."""
        try:
            user = await self._authentication.authenticate(request, passage.warnings)
        except status.APIError:
            request.retires = True
            if self.audit is not None:
                self._begin_trail(request, attributes(NOBODY, info), passage)
            raise
        # HTTP/2 costs the server more than the client. Unauthenticated clients therefore get one request per
        # connection.
        if request.http_version == "2" and (user.name == ANONYMOUS.name or UNAUTHENTICATED in user.groups):
            request.retires = True
        passage.user = user.name
        asked = attributes(user, info)
        if self.audit is not None:
            self._begin_trail(request, asked, passage)
        wanted = wanted_user(request)
        if wanted is not None:
            asked.user, constraint = await self._impersonation.impersonate(wanted, asked)
            passage.user = asked.user.name
            if passage.trail is not None:
                passage.trail.impersonated(asked.user, constraint)
        if self._limits is not None:
            seat = self._limits.seat(asked)
            if seat is not None:
                passage.seat, passage.headers = seat, seat.headers
                if seat.waiting is not None or seat.turn is not None:
                    await seat.ready()
        verdict = await self._authorization.verdict(asked)
        failed = bool(verdict.error) and not verdict.allowed
        if passage.trail is not None:
            if failed:
                passage.trail.undecided()
            else:
                passage.trail.decided(verdict.allowed, verdict.reason)
        if failed:
            raise AuthorizationFailed(verdict.error)
        if not verdict.allowed:
            raise asked.forbidden(verdict.reason)
        return asked.user

    def _begin_trail(self, request: Request, asked: AuthorizationQuery, passage: Passage) -> None:
        assert self.audit is not None
        passage.trail = self.audit.begin(request, asked, passage.identify())
