"""Authentication by OpenID Connect: JWTs of external issuers, verified with the keys that the issuer publishes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubist.api.filters.authentication.audiences import Audiences, accepted
from kubist.api.filters.authentication.authentication import Known, TokenError
from kubist.api.filters.authentication.claims import ClaimMapping
from kubist.api.filters.authentication.issuerkeys import IssuerKeys
from kubist.api.filters.authentication.tokens import Claims, UnknownSigner, issuer_of
from kubist.api.filters.authorization.query import quoted_list
from kubist.base import clock
from kubist.base.http.tls.contexts import client_context
from kubist.base.jsontext.quoting import quoted

ALGORITHMS = ("ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")
"""Signing algorithms that can be configured."""
ALIASES = {"accounts.google.com": "https://accounts.google.com"}
"""Issuers with another `iss` claim in old tokens."""
NOT_BEFORE_LEEWAY = 300


@dataclass(slots=True, frozen=True)
class Issuer:
    """One issuer: its URL, its CA, its keys' algorithms and the audiences that its tokens must name."""

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
        found = accepted(self._audiences, audiences)
        if found is None:
            return None
        try:
            claims = await self.keys.claims(token)
        except UnknownSigner:
            raise TokenError("oidc: verify token: failed to verify signature") from None
        self._check(claims)
        return await self._issuer.mapping.user(claims), found

    def _check(self, claims: Claims) -> None:
        """Checks audience, expiry and not-before time."""
        wanted = self._issuer.audiences
        meant = claims.get("aud", [])
        named = [meant] if isinstance(meant, str) else meant
        if not set(named) & set(wanted):
            expected = (
                f"audience {quoted(wanted[0])}" if len(wanted) == 1 else f"audience in {quoted_list(wanted)}"
            )
            raise TokenError(f"oidc: verify token: oidc: expected {expected} got {quoted_list(named)}")
        now = clock.now()
        if claims.get("exp", 0) < now:
            raise TokenError("oidc: verify token: oidc: token is expired")
        if claims.get("nbf", 0) > now + NOT_BEFORE_LEEWAY:
            raise TokenError("oidc: verify token: oidc: current time before the nbf (not before) time")
