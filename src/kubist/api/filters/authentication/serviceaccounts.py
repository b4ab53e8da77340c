"""Authentication by service-account token. A token is valid while its service account and its bound objects
exist. The signature is verified once per token; the objects are checked on every request, by cache entry
identity."""

from __future__ import annotations

import base64
import hmac
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kubist.api.filters.authentication.authentication import (
    AUTHENTICATED,
    CREDENTIAL_ID,
    INVALID,
    Audiences,
    Known,
    TokenError,
    audience_mismatch,
    common_audiences,
    named_audiences,
)
from kubist.api.filters.authentication.tokens import LEEWAY, Claims, KeySet, check_dates, issuer_of
from kubist.api.filters.usernames import account_groups, username
from kubist.api.resources.context import User
from kubist.base import clock
from kubist.base.caching import BoundedCache
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta.times import parse_time, today
from kubist.storage.cache.cache import Entry

if TYPE_CHECKING:
    from kubist.api.object_store.registry import Registry
    from kubist.api.resources.resource import Resource

LEGACY_ISSUER = "kubernetes/serviceaccount"
INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"
LAST_USED = "kubernetes.io/legacy-token-last-used"
_EXTRA = "authentication.kubernetes.io/"


@dataclass(slots=True)
class Bound:
    """An object that a token is bound to. The token becomes invalid when the object is deleted."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    called: str
    gone: str
    seen: Entry | None = None
    """The cache entry that was last checked and found valid."""


@dataclass(slots=True)
class Held:
    """A token with a verified signature."""

    claims: Claims
    user: User
    audiences: Audiences
    until: float
    bound: list[Bound] = field(default_factory=list)


class ServiceAccountTokens:
    """Authenticates tokens of TokenRequest, and legacy tokens that are stored in secrets."""

    def __init__(self, registry: Registry, keys: KeySet, issuers: Audiences, audiences: Audiences) -> None:
        self._registry = registry
        self._keys = keys
        self._issuers = issuers
        self._audiences = audiences
        self._verified: BoundedCache[str, Held] = BoundedCache(entries=4096, key_length=4096)

    async def authenticate(self, token: str, audiences: Audiences) -> Known | None:
        record = self._verified.get(token)
        if record is None:
            issuer = issuer_of(token)
            if not issuer:
                return None
            if issuer == LEGACY_ISSUER:
                return await self._legacy(token, audiences)
            if issuer not in self._issuers:
                return None
            record = self._hold(token)
        elif clock.now() > record.until:
            del self._verified[token]
            check_dates(record.claims)
        targets = audiences or self._audiences
        valid_for = common_audiences(record.audiences, targets)
        if not valid_for and self._audiences:
            raise TokenError(audience_mismatch(record.audiences, targets))
        for bound in record.bound:
            if (
                bound.seen is None
                or self._registry.collection(bound.resource).get(bound.seen.key) is not bound.seen
            ):
                await self._check(bound)
        return record.user, valid_for

    def discard_verdicts(self) -> None:
        self._verified.clear()

    def _hold(self, token: str) -> Held:
        claims = self._keys.claims(token)
        check_dates(claims)
        record = self._read(claims)
        self._verified[token] = record
        return record

    def _read(self, claims: Claims) -> Held:
        private = claims.get("kubernetes.io")
        if not isinstance(private, dict):
            raise TokenError(INVALID)
        namespace = private.get("namespace", "")
        reference = _reference(private, "serviceaccount")
        if not isinstance(namespace, str) or reference is None:
            raise TokenError(INVALID)
        name, uid = reference
        bound = [Bound(self._resource("serviceaccounts"), namespace, name, uid, "service account", "")]
        extra: dict[str, tuple[str, ...]] = {}
        if claims.get("jti"):
            extra[CREDENTIAL_ID] = (f"JTI={claims['jti']}",)
        for kind in ("secret", "pod", "node"):
            named = _reference(private, kind)
            if named is None:
                continue
            if kind != "secret":
                extra[f"{_EXTRA}{kind}-name"] = named[:1]
                if named[1]:
                    extra[f"{_EXTRA}{kind}-uid"] = named[1:]
            if kind == "node" and private.get("pod") is not None:
                continue
            home = "" if kind == "node" else namespace
            gone = "service account token has been invalidated"
            bound.append(Bound(self._resource(f"{kind}s"), home, *named, kind, gone))
        user = User(
            username(namespace, name), uid, (*account_groups(namespace), AUTHENTICATED), tuple(extra.items())
        )
        audiences = named_audiences(claims.get("aud"), self._audiences)
        return Held(claims, user, audiences, float(claims.get("exp", float("inf"))) + LEEWAY, bound)

    def _resource(self, plural: str) -> Resource:
        resource = self._registry.resources.stored("", plural)
        assert resource is not None
        return resource

    async def _check(self, bound: Bound) -> None:
        """Raises TokenError if the bound object is missing, has another UID, or was deleted more than LEEWAY
        seconds ago."""
        entry = await self._registry.read(bound.resource, bound.namespace, bound.name)
        if entry is None:
            raise TokenError(bound.gone or f"{bound.resource.resource} {quoted(bound.name)} not found")
        metadata = entry.object()["metadata"]
        if metadata.get("uid") != bound.uid:
            ref = "" if bound.called == "service account" else f" service account {bound.called} ref"
            raise TokenError(
                f"{bound.called} UID ({metadata['uid']}) does not match{ref} claim ({bound.uid})"
            )
        deleted = metadata.get("deletionTimestamp")
        if deleted is None:
            bound.seen = entry
        elif parse_time(deleted) < clock.now() - LEEWAY:
            gone = f"service account {bound.namespace}/{bound.name} has been deleted"
            raise TokenError(bound.gone or gone)

    async def _legacy(self, token: str, audiences: Audiences) -> Known | None:
        """A legacy token without expiry. It is valid as long as its secret contains it."""
        claims = self._keys.claims(token)
        said = {
            field: claims.get(f"kubernetes.io/serviceaccount/{field}", "")
            for field in ("namespace", "secret.name", "service-account.name", "service-account.uid")
        }
        for field_name, value in said.items():
            if not isinstance(value, str):
                raise TokenError(INVALID)
            if not value:
                raise TokenError(f"{field_name} claim is missing")
        namespace, secret_name, name, uid = said.values()
        if claims.get("sub") != username(namespace, name):
            raise TokenError("sub claim is invalid")
        targets = audiences or self._audiences
        valid_for = common_audiences(self._audiences, targets)
        if not valid_for and self._audiences:
            raise TokenError(audience_mismatch(self._audiences, targets))
        entry = await self._registry.read(self._resource("secrets"), namespace, secret_name)
        secret: dict[str, Any] = entry.object() if entry is not None else {}
        if not secret or secret["metadata"].get("deletionTimestamp"):
            raise TokenError("Token has been invalidated")
        copy = base64.b64decode((secret.get("data") or {}).get("token", ""))
        if not hmac.compare_digest(copy, token.encode()):
            raise TokenError("Token does not match server's copy")
        await self._check(
            Bound(self._resource("serviceaccounts"), namespace, name, uid, "service account", "")
        )
        labels = secret["metadata"].get("labels") or {}
        await self._mark_used(namespace, secret_name, labels.get(LAST_USED, ""))
        if labels.get(INVALID_SINCE):
            raise TokenError(f"the token in secret {namespace}/{secret_name} has been marked invalid")
        return User(username(namespace, name), uid, (*account_groups(namespace), AUTHENTICATED)), valid_for

    async def _mark_used(self, namespace: str, secret: str, last: str) -> None:
        """Sets the last-used label of the secret, at most once a day, so that unused tokens can be found and
        deleted."""
        this_day = today()
        if last >= this_day:
            return

        def mark(current: dict[str, Any]) -> dict[str, Any]:
            metadata = current["metadata"]
            metadata["labels"] = {**(metadata.get("labels") or {}), LAST_USED: this_day}
            return current

        await self._registry.mutate("secrets", secret, namespace, mark)


def _reference(private: Claims, kind: str) -> tuple[str, str] | None:
    """Name and UID of the bound object of a kind in the private claims; None if absent."""
    reference = private.get(kind)
    if reference is None:
        return None
    if not isinstance(reference, dict):
        raise TokenError(INVALID)
    name, uid = reference.get("name", ""), reference.get("uid", "")
    if not isinstance(name, str) or not isinstance(uid, str):
        raise TokenError(INVALID)
    return name, uid
