"""Authentication by OpenID Connect: JWTs of external issuers, verified with the keys that the issuer publishes."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import orjson

from kubist.api.filters.authentication.authentication import Audiences, Known, TokenError, accepted
from kubist.api.filters.authentication.claims import ClaimMapping
from kubist.api.filters.authentication.key_files import PublicKey
from kubist.api.filters.authentication.tokens import Claims, KeySet, UnknownSigner, issuer_of, read_jwk
from kubist.api.filters.authorization.query import quoted_list
from kubist.base import clock
from kubist.base.http.client.calls import CallFailed, get
from kubist.base.http.tls.contexts import client_context
from kubist.base.jsontext.quoting import quoted

log = logging.getLogger("kubist.filters")


ALGORITHMS = ("ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")
"""Signing algorithms that can be configured."""
ALIASES = {"accounts.google.com": "https://accounts.google.com"}
"""Issuers whose old tokens have another `iss` claim."""
NOT_BEFORE_LEEWAY = 300


@dataclass(slots=True, frozen=True)
class Issuer:
    """One issuer: its URL and CA, the algorithms of its keys, and the audiences that its tokens must name."""

    url: str
    audiences: Sequence[str]
    mapping: ClaimMapping
    certificate_authority: str = ""
    """PEM; empty for the system's CAs."""
    discovery_url: str = ""
    algorithms: Sequence[str] = ALGORITHMS


class OIDC:
    """Authenticates the tokens of one issuer."""

    def __init__(self, issuer: Issuer, audiences: Audiences) -> None:
        self._issuer = issuer
        self._audiences = audiences
        context = client_context(issuer.certificate_authority.encode())
        self.keys = IssuerKeys(issuer.url, context, issuer.algorithms, issuer.discovery_url)

    async def authenticate(self, token: str, audiences: Audiences) -> Known | None:
        issuer = issuer_of(token)
        if ALIASES.get(issuer, issuer) != self._issuer.url:
            return None
        valid_for = accepted(self._audiences, audiences)
        if valid_for is None:
            return None
        try:
            claims = await self.keys.claims(token)
        except UnknownSigner:
            raise TokenError("oidc: verify token: failed to verify signature") from None
        self._check(claims)
        return await self._issuer.mapping.user(claims), valid_for

    def _check(self, claims: Claims) -> None:
        """Checks audience, expiry and not-before time."""
        valid = self._issuer.audiences
        meant = claims.get("aud", [])
        named = [meant] if isinstance(meant, str) else meant
        if not set(named) & set(valid):
            expected = (
                f"audience {quoted(valid[0])}" if len(valid) == 1 else f"audience in {quoted_list(valid)}"
            )
            raise TokenError(f"oidc: verify token: oidc: expected {expected} got {quoted_list(named)}")
        now = clock.now()
        if claims.get("exp", 0) < now:
            raise TokenError("oidc: verify token: oidc: token is expired")
        if claims.get("nbf", 0) > now + NOT_BEFORE_LEEWAY:
            raise TokenError("oidc: verify token: oidc: current time before the nbf (not before) time")


TIMEOUT = 30.0
"""Timeout in seconds of one call to the issuer."""
REFETCH_AFTER = 10.0
"""Seconds after a fetch before an unknown key triggers the next fetch. Doubles with each consecutive failure."""
BACKOFF_LIMIT = 300.0
WAIT = 10.0
"""Maximum seconds that a request waits for a running fetch."""
WAITING_LIMIT = 64
"""Maximum number of waiting requests. Requests beyond it are rejected at once."""
WELL_KNOWN = "/.well-known/openid-configuration"


class IssuerKeys:
    """Published keys of one issuer."""

    def __init__(
        self, issuer: str, context: ssl.SSLContext, algorithms: Iterable[str], discovery_url: str = ""
    ) -> None:
        self._issuer = issuer
        self._discovery_url = discovery_url or issuer.removesuffix("/") + WELL_KNOWN
        self._context = context
        self._algorithms = tuple(algorithms)
        self._keys: KeySet | None = None
        self._fetching: asyncio.Task[None] | None = None
        self._next_fetch = 0.0
        self._failures = 0
        self._waiting = 0

    async def claims(self, token: str) -> Claims:
        """Claims of a token that the issuer signed. A token waits for a fetch only if no known key signed it."""
        if self._keys is not None:
            try:
                return self._keys.claims(token)
            except UnknownSigner:
                if not await self._refresh():
                    raise
        else:
            await self._refresh()
        if self._keys is None:
            raise TokenError("oidc: authenticator not initialized")
        return self._keys.claims(token)

    async def ready_within(self, seconds: float) -> bool:
        """Fetches keys, with retries, for at most `seconds`. Returns whether keys are available."""
        deadline = monotonic() + seconds
        while self._keys is None:
            await self._refresh()
            pause = max(self._next_fetch - monotonic(), 0.05)
            if self._keys is None:
                if monotonic() + pause > deadline:
                    return False
                await asyncio.sleep(pause)
        return True

    def cancel(self) -> None:
        """Cancels a running fetch."""
        if self._fetching is not None:
            self._fetching.cancel()

    async def close(self) -> None:
        """Cancels a running fetch and waits until it has ended."""
        fetching = self._fetching
        if fetching is not None:
            fetching.cancel()
            await asyncio.wait([fetching])

    async def _refresh(self) -> bool:
        """Waits for a fetch, started by this or another request. False if it is too early for a fetch, or if too many
        requests are already waiting."""
        if self._fetching is None:
            if monotonic() < self._next_fetch:
                return False
            self._fetching = asyncio.get_running_loop().create_task(self._fetch())
        if self._waiting >= WAITING_LIMIT:
            return False
        self._waiting += 1
        try:
            await asyncio.wait([self._fetching], timeout=WAIT)
        finally:
            self._waiting -= 1
        return True

    async def _fetch(self) -> None:
        try:
            self._keys = KeySet(await self._published(), self._algorithms)
            self._failures = 0
        except (CallFailed, ValueError, KeyError, TypeError) as error:
            self._failures += 1
            log.error("cannot fetch the keys of the issuer %s: %s", self._issuer, error)
        finally:
            pause = REFETCH_AFTER * 2 ** min(max(self._failures - 1, 0), 10)
            self._next_fetch = monotonic() + min(pause, BACKOFF_LIMIT)
            self._fetching = None

    async def _published(self) -> dict[str, PublicKey]:
        configuration = await self._document(self._discovery_url)
        if configuration.get("issuer") != self._issuer:
            raise ValueError(
                f"issuer did not match the issuer returned by provider, expected {self._issuer!r} "
                f"got {configuration.get('issuer')!r}"
            )
        where = configuration.get("jwks_uri")
        if not isinstance(where, str):
            raise ValueError("the discovery document has no jwks_uri")
        published = (await self._document(where)).get("keys") or []
        keys: dict[str, PublicKey] = {}
        for index, key in enumerate(published):
            try:
                read = read_jwk(key)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                log.warning("key %d of the issuer %s cannot be used: %s", index, self._issuer, error)
                continue
            if read is not None:
                kid = key.get("kid")
                keys[kid if isinstance(kid, str) else f"#{index}"] = read
        return keys

    async def _document(self, url: str) -> dict[str, Any]:
        code, body = await get(url, context=self._context, timeout=TIMEOUT)
        if code != 200:
            raise CallFailed(f"{url} returned the status {code}")
        document = orjson.loads(body)
        if not isinstance(document, dict):
            raise ValueError(f"{url} did not return a JSON object")
        return document
