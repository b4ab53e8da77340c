"""Authentication and authorization webhooks: TokenReview and SubjectAccessReview over HTTPS.

Responses are cached for the TTLs of the flags or the configuration file.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
from typing import TYPE_CHECKING, Any, Protocol

from kubist.api.filters.authentication.authentication import Audiences, Known, TokenError, with_groups
from kubist.api.filters.authorization.authorization import Undecided
from kubist.api.filters.authorization.match_conditions import MatchConditions, MatchFailed
from kubist.api.filters.authorization.query import AuthorizationQuery, selectors_asked
from kubist.api.resources.context import Rules, User
from kubist.base import clock
from kubist.base.caching import BoundedCache
from kubist.base.http.client.calls import CallFailed
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.filters.authorization.configuration import WebhookSettings

log = logging.getLogger("kubist.filters")

REMEMBERED = 10_000
CACHED_SIZE = 10_000
"""Responses to requests with at least this many characters of attributes are not cached."""
MALFORMED = "the token webhook's answer is malformed"

BOTH = "webhook subject access review returned both allow and deny response"
TRIES = 5
FIRST_PAUSE = 0.5
"""Seconds before the first retry of a failed review. Each later pause is 1.5 times as long. A random factor of up to
1.2 keeps servers from retrying at the same time."""


class Remote(Protocol):
    """Server of a webhook."""

    async def ask(self, review: Object) -> Object:
        """Status of a review. Raises CallFailed."""
        ...


async def ask_with_retries(remote: Remote, review: Object) -> Object:
    """Status of a review. Temporary failures are retried up to TRIES times in all."""
    pause = FIRST_PAUSE
    for _ in range(TRIES - 1):
        try:
            return await remote.ask(review)
        except CallFailed as error:
            if not error.passing:
                raise
        await asyncio.sleep(pause * random.uniform(1, 1.2))
        pause *= 1.5
    return await remote.ask(review)


class AnswerCache:
    """Cache of responses with expiry times. Keys are digests, so that long requests take no more memory."""

    def __init__(self) -> None:
        self._answers: BoundedCache[bytes, tuple[float, Any]] = BoundedCache(
            entries=REMEMBERED, key_length=hashlib.sha256().digest_size
        )

    def get(self, question: object) -> Any:
        until, answer = self._answers.get(_digest(question), (0.0, None))
        return answer if clock.monotonic() < until else None

    def put(self, question: object, answer: Any, seconds: float) -> None:
        if seconds > 0:
            self._answers[_digest(question)] = (clock.monotonic() + seconds, answer)


def _digest(question: object) -> bytes:
    return hashlib.sha256(repr(question).encode()).digest()


class WebhookTokens:
    """Authenticates bearer tokens by a TokenReview webhook."""

    def __init__(self, remote: Remote, version: str, audiences: Audiences, seconds: float) -> None:
        self._remote = remote
        self._version = version
        self._audiences = audiences
        self._seconds = seconds
        self._known = AnswerCache()

    async def authenticate(self, token: str, audiences: Audiences) -> Known | None:
        status: Object | None = self._known.get((token, audiences))
        if status is None:
            spec: Object = {"token": token}
            if audiences:
                spec["audiences"] = list(audiences)
            try:
                status = await ask_with_retries(
                    self._remote, _review("authentication.k8s.io", self._version, "TokenReview", spec)
                )
            except CallFailed as error:
                log.error("the token webhook failed: %s", error)
                raise TokenError(str(error)) from None
            self._known.put((token, audiences), status, self._seconds)
        if not status.get("authenticated"):
            if status.get("error"):
                raise TokenError(str(status["error"]))
            return None
        confirmed = _texts(status.get("audiences")) or self._audiences
        accepted = tuple(audience for audience in audiences if audience in confirmed)
        if audiences and not accepted:
            return None
        return with_groups(_user(status.get("user") or {})), accepted


def _user(info: Object) -> User:
    """The user of a TokenReview response. Raises TokenError if a field has the wrong type."""
    if not isinstance(info, dict):
        raise TokenError(MALFORMED)
    name, uid, extra = info.get("username") or "", info.get("uid") or "", info.get("extra") or {}
    if not isinstance(name, str) or not isinstance(uid, str) or not isinstance(extra, dict):
        raise TokenError(MALFORMED)
    pairs = tuple((key, _texts(values)) for key, values in extra.items())
    return User(name, uid, _texts(info.get("groups")), pairs)


def _texts(values: Any) -> tuple[str, ...]:
    if values is None:
        return ()
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TokenError(MALFORMED)
    return tuple(values)


class Webhook:
    """Authorizer of the type Webhook."""

    def __init__(self, remote: Remote, settings: WebhookSettings) -> None:
        self._remote = remote
        self._settings = settings
        self._conditions = MatchConditions(settings.conditions)
        self._known = AnswerCache()

    async def decide(self, attributes: AuthorizationQuery) -> tuple[bool | None, str]:
        settings = self._settings
        try:
            if not await self._conditions.hold(attributes):
                return None, ""
        except MatchFailed as error:
            log.error("the match conditions of the authorization webhook failed: %s", error)
            raise Undecided(str(error), denied=settings.deny_on_failure) from None
        spec = _spec(attributes, settings.version)
        status: Object | None = self._known.get(spec)
        if status is None:
            try:
                review = _review("authorization.k8s.io", settings.version, "SubjectAccessReview", spec)
                status = await ask_with_retries(self._remote, review)
            except CallFailed as error:
                log.error("the authorization webhook failed: %s", error)
                raise Undecided(str(error), denied=settings.deny_on_failure) from None
            if _size(attributes) < CACHED_SIZE:
                ttl = settings.allowed_for if status.get("allowed") else settings.denied_for
                self._known.put(spec, status, ttl)
        reason = str(status.get("reason") or "")
        if status.get("denied"):
            if status.get("allowed"):
                log.error("the authorization webhook both allowed and denied a request; it is denied")
                raise Undecided(BOTH, denied=True, reason=reason)
            return False, reason
        return (True if status.get("allowed") else None), reason

    async def rules(self, user: User, namespace: str) -> Rules:
        return Rules([], [], True, "webhook authorizer does not support user rule resolution")


def _size(query: AuthorizationQuery) -> int:
    """Length in characters of the attributes that a client chooses."""
    texts = (query.namespace, query.verb, query.group, query.version, query.resource, query.subresource)
    return sum(map(len, texts)) + len(query.name) + len(query.path)


def _review(group: str, version: str, kind: str, spec: Object) -> Object:
    return {"kind": kind, "apiVersion": f"{group}/{version}", "metadata": {}, "spec": spec, "status": {}}


def _spec(query: AuthorizationQuery, version: str) -> Object:
    spec: Object = {}
    if query.is_resource:
        pairs = {
            "namespace": query.namespace,
            "verb": query.verb,
            "group": query.group,
            "version": query.version,
            "resource": query.resource,
            "subresource": query.subresource,
            "name": query.name,
        }
        about: Object = {name: value for name, value in pairs.items() if value}
        spec["resourceAttributes"] = about | selectors_asked(query)
    else:
        spec["nonResourceAttributes"] = {"path": query.path, "verb": query.verb}
    user = query.user
    spec |= {"user": user.name, "uid": user.uid, "extra": {key: list(values) for key, values in user.extra}}
    spec["group" if version == "v1beta1" else "groups"] = list(user.groups)
    return {name: value for name, value in spec.items() if value}
