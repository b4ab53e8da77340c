"""Authentication and authorization by asking somebody else: TokenReview and SubjectAccessReview over HTTPS.

Answers are remembered for a while, as the flags say.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from kubist.caching import BoundedCache
from kubist.context import Rules, User
from kubist.filters.attributes import Attributes, selectors_asked
from kubist.filters.authentication import Audiences, Known, TokenError, with_groups
from kubist.filters.kubeconfig import RemoteReview
from kubist.http.client import CallFailed

log = logging.getLogger("kubist.filters")

MALFORMED = "the token webhook's answer is malformed"

Object = dict[str, Any]


class Remembered:
    """Answers with the time until which they hold."""

    def __init__(self) -> None:
        self._answers: BoundedCache[Any, tuple[float, Any]] = BoundedCache(entries=2048, key_length=10_000)

    def get(self, question: Any) -> Any:
        until, answer = self._answers.get(question, (0.0, None))
        return answer if time.monotonic() < until else None

    def put(self, question: Any, answer: Any, seconds: float) -> None:
        if seconds > 0:
            self._answers[question] = (time.monotonic() + seconds, answer)


class WebhookTokens:
    """Bearer tokens that a remote service knows."""

    def __init__(self, remote: RemoteReview, version: str, audiences: Audiences, seconds: float) -> None:
        self._remote = remote
        self._version = version
        self._audiences = audiences
        self._seconds = seconds
        self._known = Remembered()

    async def authenticate(self, token: str, audiences: Audiences) -> Known | None:
        found: Object | None = self._known.get((token, audiences))
        if found is None:
            spec: Object = {"token": token}
            if audiences:
                spec["audiences"] = list(audiences)
            try:
                found = await self._remote.ask(
                    _review("authentication.k8s.io", self._version, "TokenReview", spec)
                )
            except CallFailed as error:
                log.error("the token webhook failed: %s", error)
                raise TokenError(str(error)) from None
            self._known.put((token, audiences), found, self._seconds)
        if not found.get("authenticated"):
            if found.get("error"):
                raise TokenError(str(found["error"]))
            return None
        told = _texts(found.get("audiences")) or self._audiences
        accepted = tuple(audience for audience in audiences if audience in told)
        if audiences and not accepted:
            return None
        return with_groups(_user(found.get("user") or {})), accepted


def _user(info: Object) -> User:
    """The user of an answered review; TokenError if the answer has other types than a UserInfo."""
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
    """The Webhook mode."""

    def __init__(self, remote: RemoteReview, version: str, allowed_for: float, denied_for: float) -> None:
        self._remote = remote
        self._version = version
        self._allowed_for = allowed_for
        self._denied_for = denied_for
        self._known = Remembered()

    async def decide(self, attributes: Attributes) -> tuple[bool | None, str]:
        spec = _spec(attributes, self._version)
        question = (attributes.user, *(str(value) for value in spec.values()))
        status: Object | None = self._known.get(question)
        if status is None:
            try:
                review = _review("authorization.k8s.io", self._version, "SubjectAccessReview", spec)
                status = await self._remote.ask(review)
            except CallFailed as error:
                log.error("the authorization webhook failed: %s", error)
                return None, ""
            allowed = bool(status.get("allowed"))
            self._known.put(question, status, self._allowed_for if allowed else self._denied_for)
        reason = str(status.get("reason") or "")
        if status.get("allowed"):
            return (None, reason) if status.get("denied") else (True, reason)
        return (False if status.get("denied") else None), reason

    def rules(self, user: User, namespace: str) -> Rules:
        return Rules([], [], True, "webhook authorizer does not support user rule resolution")


def _review(group: str, version: str, kind: str, spec: Object) -> Object:
    return {"kind": kind, "apiVersion": f"{group}/{version}", "metadata": {}, "spec": spec, "status": {}}


def _spec(asked: Attributes, version: str) -> Object:
    spec: Object = {}
    if asked.is_resource:
        pairs = {
            "namespace": asked.namespace,
            "verb": asked.verb,
            "group": asked.group,
            "version": asked.version,
            "resource": asked.resource,
            "subresource": asked.subresource,
            "name": asked.name,
        }
        about: Object = {name: value for name, value in pairs.items() if value}
        spec["resourceAttributes"] = about | selectors_asked(asked)
    else:
        spec["nonResourceAttributes"] = {"path": asked.path, "verb": asked.verb}
    user = asked.user
    spec |= {"user": user.name, "uid": user.uid, "extra": {key: list(values) for key, values in user.extra}}
    spec["group" if version == "v1beta1" else "groups"] = list(user.groups)
    return {name: value for name, value in spec.items() if value}
