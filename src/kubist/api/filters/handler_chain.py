"""Handler chain of every request: authentication, impersonation, flow control, authorization, and audit events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kubist.api.filters.audit.audit import Audit, Trail
from kubist.api.filters.authentication.authentication import ANONYMOUS, UNAUTHENTICATED, Authentication
from kubist.api.filters.authorization.authorization import Authorization, AuthorizationFailed
from kubist.api.filters.authorization.query import AuthorizationQuery, attributes
from kubist.api.filters.flowcontrol.inflight import Counted
from kubist.api.filters.flowcontrol.seats import Seat, TooManyRequests
from kubist.api.filters.impersonation import Impersonation, wanted_user
from kubist.api.resources.context import NOBODY, Context
from kubist.model.meta import status


class Limits(Protocol):
    """Flow control: `kubist.api.filters.flowcontrol.flowcontrol`."""

    def seat(self, request: AuthorizationQuery, query: Mapping[str, str]) -> Seat | Counted | None: ...


class HandlerChain:
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

    async def run(self, ctx: Context) -> None:
        """Set the effective user of the request. Raises APIError, TooManyRequests or AuthorizationFailed if the
        request is rejected."""
        request = ctx.request
        try:
            user = await self._authentication.authenticate(request, ctx.warnings)
        except status.APIError:
            request.retires = True
            if self.audit is not None:
                self._begin_trail(self.audit, ctx, attributes(NOBODY, ctx.info))
            raise
        if user.name != ANONYMOUS.name and UNAUTHENTICATED not in user.groups:
            request.is_authenticated = True
        elif request.http_version == "2":
            # HTTP/2 costs the server more than the client. Unauthenticated clients therefore get one request per
            # connection.
            request.retires = True
        ctx.user = user
        query = attributes(user, ctx.info)
        trail = self._begin_trail(self.audit, ctx, query) if self.audit is not None else None
        target_user = wanted_user(request)
        if target_user is not None:
            ctx.user, constraint = await self._impersonation.impersonate(target_user, query)
            query.user = ctx.user
            if trail is not None:
                trail.impersonated(ctx.user, constraint)
        if self._limits is not None:
            try:
                seat = self._limits.seat(query, ctx.query)
            except TooManyRequests as error:
                ctx.response_headers = error.headers
                raise
            if seat is not None:
                ctx.seat, ctx.response_headers = seat, seat.headers
                if seat.waiting is not None or seat.turn is not None:
                    await seat.ready()
        verdict = await self._authorization.verdict(query)
        failed = bool(verdict.error) and not verdict.allowed
        if trail is not None:
            if failed:
                trail.undecided()
            else:
                trail.decided(verdict.allowed, verdict.reason)
        if failed:
            raise AuthorizationFailed(verdict.error)
        if not verdict.allowed:
            raise query.forbidden(verdict.reason)

    def _begin_trail(self, audit: Audit, ctx: Context, query: AuthorizationQuery) -> Trail | None:
        """Audit trail of the request, unless the policy omits it."""
        trail = ctx.trail = audit.begin(ctx.request, query, ctx.audit_id)
        if trail is not None:
            ctx.audit_annotations = trail.annotations
        return trail
