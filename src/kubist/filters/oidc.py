"""OpenID Connect: tokens of an issuer elsewhere, verified with the keys that it publishes."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from dataclasses import dataclass
from typing import Any

import orjson

from kubist.context import User
from kubist.filters.authentication import CREDENTIAL_ID, Audiences, Known, TokenError, accepted, with_groups
from kubist.filters.tokens import Claims, KeySet, header_of, issuer_of, read_jwk
from kubist.http.client import CallFailed, get

log = logging.getLogger("kubist.filters")

TIMEOUT = 30.0
REFETCH_AFTER = 10.0
"""Seconds between two looks for a key that the issuer had not published."""


@dataclass(slots=True, frozen=True)
class Issuer:
    """What the `--oidc-*` flags say."""

    url: str
    client_id: str
    ca_file: str = ""
    username_claim: str = "sub"
    username_prefix: str = ""
    groups_claim: str = ""
    groups_prefix: str = ""
    signing_algs: tuple[str, ...] = ("RS256",)
    required_claims: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not self.url.startswith("https://"):
            raise ValueError(f"--oidc-issuer-url must be an https URL, not {self.url!r}")
        if not self.client_id:
            raise ValueError("--oidc-client-id is required with --oidc-issuer-url")

    def prefix(self) -> str:
        """What usernames begin with; `-` says nothing, and nothing said the issuer, except for addresses."""
        if self.username_prefix == "-":
            return ""
        if not self.username_prefix and self.username_claim != "email":
            return f"{self.url}#"
        return self.username_prefix


class OIDC:
    """Knows the tokens of one issuer."""

    def __init__(self, issuer: Issuer, audiences: Audiences) -> None:
        self._issuer = issuer
        self._audiences = audiences
        self._context = ssl.create_default_context(cafile=issuer.ca_file or None)
        self._keys: KeySet | None = None
        self._fetched = 0.0
        self._fetching = asyncio.Lock()

    async def authenticate(self, token: str, audiences: Audiences) -> Known | None:
        if issuer_of(token) != self._issuer.url:
            return None
        found = accepted(self._audiences, audiences)
        if found is None:
            return None
        claims = (await self._key_set(token)).claims(token)
        return self._user(claims), found

    async def _key_set(self, token: str) -> KeySet:
        """The issuer's keys; fetched anew when a token names one that is not among them."""
        kid = header_of(token).get("kid")
        async with self._fetching:
            stale = time.monotonic() - self._fetched > REFETCH_AFTER
            if self._keys is None or (kid not in self._keys and stale):
                try:
                    self._keys = await self._fetch()
                    self._fetched = time.monotonic()
                except (CallFailed, ValueError, KeyError, TypeError) as error:
                    log.error("the keys of %s cannot be read: %s", self._issuer.url, error)
            if self._keys is None:
                raise TokenError("oidc: authenticator not initialized")
            return self._keys

    async def _fetch(self) -> KeySet:
        where = f"{self._issuer.url.rstrip('/')}/.well-known/openid-configuration"
        configuration = await self._document(where)
        if configuration.get("issuer") != self._issuer.url:
            raise ValueError(f"the issuer calls itself {configuration.get('issuer')!r}")
        published = (await self._document(configuration["jwks_uri"])).get("keys") or []
        keys = {key.get("kid", str(index)): read_jwk(key) for index, key in enumerate(published)}
        known = {kid: key for kid, key in keys.items() if key is not None}
        return KeySet(known, self._issuer.signing_algs)

    async def _document(self, url: str) -> dict[str, Any]:
        code, body = await get(url, context=self._context, timeout=TIMEOUT)
        if code != 200:
            raise CallFailed(f"{url} answered {code}")
        document = orjson.loads(body)
        if not isinstance(document, dict):
            raise ValueError(f"{url} is no object")
        return document

    def _user(self, claims: Claims) -> User:
        issuer = self._issuer
        meant = claims.get("aud")
        if issuer.client_id not in ([meant] if isinstance(meant, str) else meant or ()):
            raise TokenError(
                f"oidc: verify token: oidc: expected audience {issuer.client_id!r} got {meant!r}"
            )
        now = time.time()
        if not isinstance(claims.get("exp"), int | float) or claims["exp"] < now:
            raise TokenError("oidc: verify token: oidc: token is expired")
        if isinstance(claims.get("nbf"), int | float) and claims["nbf"] > now + 300:
            raise TokenError("oidc: verify token: oidc: current time before the nbf (not before) time")
        for claim, value in issuer.required_claims:
            if claims.get(claim) != value:
                raise TokenError(f"oidc: required claim {claim} value does not match")
        extra = ((CREDENTIAL_ID, (f"JTI={claims['jti']}",)),) if claims.get("jti") else ()
        return with_groups(User(self._name(claims), "", self._groups(claims), extra))

    def _name(self, claims: Claims) -> str:
        claim = self._issuer.username_claim
        name = claims.get(claim)
        if not isinstance(name, str) or not name:
            raise TokenError(f"oidc: parse username claims {claim!r}: claim not present")
        if claim == "email" and claims.get("email_verified", True) is not True:
            raise TokenError("oidc: email not verified")
        return self._issuer.prefix() + name

    def _groups(self, claims: Claims) -> tuple[str, ...]:
        claim = self._issuer.groups_claim
        said = claims.get(claim) if claim else None
        if said is None:
            return ()
        groups = [said] if isinstance(said, str) else said
        if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
            raise TokenError(f"oidc: parse groups claim {claim!r}: not a list of names")
        return tuple(self._issuer.groups_prefix + group for group in groups)
