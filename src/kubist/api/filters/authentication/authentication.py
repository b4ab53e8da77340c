"""Authentication: front proxy, client certificate, bearer token, anonymous. The first authenticator that accepts
decides."""

from __future__ import annotations

import csv
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from kubist.api.filters.authentication.client_ca import ClientCA, Rejected, Verified
from kubist.api.filters.authorization.query import aggregate, quoted_list
from kubist.api.resources.context import User
from kubist.base.http.messages import Request
from kubist.model.meta import status

if TYPE_CHECKING:
    from kubist.api.filters.authentication.configuration import JWTAuthenticators

log = logging.getLogger("kubist.filters")

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = User("system:anonymous", groups=(UNAUTHENTICATED,))
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
INVALID = "invalid bearer token"

Audiences = tuple[str, ...]
Known = tuple[User, Audiences]
"""The user, and those of the requested audiences that the token is valid for."""


class TokenError(Exception):
    """Reason why a token is not accepted."""


class TokenAuthenticator(Protocol):
    """Authenticates some bearer tokens. None: the token is of another type. TokenError: the token is invalid."""

    async def authenticate(self, token: str, audiences: Audiences) -> Known | None: ...


class RequestAuthenticator(Protocol):
    """Authenticates requests by credentials other than a bearer token.

    None: the request has no such credential. Rejected: it has one that is not accepted.
    """

    def user(self, request: Request) -> User | Rejected | None: ...


@runtime_checkable
class CachesVerdicts(Protocol):
    """Authenticator that caches accepted or rejected credentials for a time."""

    def discard_verdicts(self) -> None: ...


class Anonymous(NamedTuple):
    """Anonymous access: whether requests without credentials become system:anonymous, and for which paths
    (none: all)."""

    enabled: bool
    paths: frozenset[str] = frozenset()


ANYWHERE = Anonymous(True)


class Authentication:
    """All authenticators in order. `audiences` are the audiences of this server."""

    def __init__(
        self,
        tokens: Sequence[TokenAuthenticator],
        *,
        anonymous: Anonymous,
        audiences: Audiences = (),
        requests: Sequence[RequestAuthenticator] = (),
        jwt: JWTAuthenticators | None = None,
    ) -> None:
        self.tokens = list(tokens)
        self.requests = list(requests)
        self.anonymous = anonymous
        self.audiences = audiences
        self.jwt = jwt
        """JWT authenticators, which fetch keys and watch their configuration file."""

    async def authenticate(self, request: Request, warnings: list[str]) -> User:
        """Authenticated user. Raises 401 if a credential is not accepted, or if there is none and anonymous
        access is off."""
        rejected: list[str] = []
        for authenticator in self.requests:
            user = authenticator.user(request)
            if isinstance(user, User):
                return user
            if user is not None:
                rejected.append(user.reason)
        headers = request.headers
        token = bearer(headers.get("authorization", ""), warnings)
        if not token and "sec-websocket-protocol" in headers:
            try:
                token = websocket_token(headers)
            except TokenError:
                raise status.unauthorized() from None
        if token:
            known, _ = await self._known(token, self.audiences)
            if known is not None:
                return known[0]
        enabled, paths = self.anonymous
        if enabled and not token and not rejected and (not paths or request.path in paths):
            return ANONYMOUS
        if rejected and request.connection.get("rejected") != rejected:  # once per connection
            request.connection["rejected"] = rejected
            log.info("a client certificate was rejected: %s", aggregate(rejected))
        raise status.unauthorized()

    def discard_verdicts(self) -> None:
        """Checks the dates of all credentials again, because the server's clock was changed."""
        for authenticator in (*self.requests, *self.tokens):
            if isinstance(authenticator, CachesVerdicts):
                authenticator.discard_verdicts()

    async def review(self, token: str, audiences: Audiences) -> Known | str:
        """User and audiences of a token, or the error text.

        The token is parsed like an Authorization header. An empty token means the anonymous user if anonymous access is
        unlimited.
        """
        token = bearer(f"Bearer {token}", [])
        if not token and self.anonymous == ANYWHERE:
            return ANONYMOUS, audiences or self.audiences
        known, errors = await self._known(token, audiences or self.audiences)
        return known if known is not None else aggregate([INVALID, *errors])

    async def _known(self, token: str, audiences: Audiences) -> tuple[Known | None, list[str]]:
        errors = []
        for authenticator in self.tokens:
            try:
                known = await authenticator.authenticate(token, audiences)
            except TokenError as error:
                errors.append(str(error))
                continue
            if known is not None:
                return known, []
        return None, errors


def with_groups(user: User) -> User:
    """The user with the group system:authenticated, unless it is in that group or in system:unauthenticated."""
    if AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return User(user.name, user.uid, (*user.groups, AUTHENTICATED), user.extra)


def bearer(header: str, warnings: list[str]) -> str:
    """Bearer token in an Authorization header; empty if it has none."""
    parts = header.strip().split(" ", 2)
    if len(parts) < 2 or parts[0].lower() != "bearer":
        return ""
    if not parts[1] and len(parts) == 3:
        warnings.append(
            "the provided Authorization header contains extra space before the bearer token, and is ignored"
        )
    return parts[1]


TOKEN_PROTOCOL = "base64url.bearer.authorization.k8s.io."


def websocket_token(headers: dict[str, str]) -> str:
    """Token of a WebSocket request, which browsers can only send as a subprotocol; empty if there is none.

    Raises `TokenError` if there are two tokens, if one cannot be decoded, or if no other subprotocol is
    offered.
    """
    protocols = headers.get("sec-websocket-protocol", "")
    if TOKEN_PROTOCOL not in protocols or headers.get("upgrade", "").lower() != "websocket":
        return ""
    # Saves start-up time: tokens load `cryptography`.
    from kubist.api.filters.authentication.tokens import decode

    offered = [protocol.strip() for protocol in protocols.split(",")]
    encoded = [protocol[len(TOKEN_PROTOCOL) :] for protocol in offered if protocol.startswith(TOKEN_PROTOCOL)]
    if len(encoded) > 1:
        raise TokenError("multiple base64.bearer.authorization tokens specified")
    try:
        token = decode(encoded[0]).decode() if encoded else ""
    except ValueError:
        raise TokenError("invalid base64.bearer.authorization token") from None
    if token and len(offered) == 1:
        raise TokenError("missing additional subprotocol")
    return token


class ClientCertificates:
    """Client certificates of `--client-ca-file`: the common name is the user, the organizations are the groups."""

    def __init__(self, authorities: ClientCA, *, uid: bool = True) -> None:
        """`uid`: whether a UID in the subject is the user's uid."""
        self._authorities = authorities
        self._uid = uid

    def user(self, request: Request) -> User | Rejected | None:
        verdict = self._authorities.verify(request)
        if not isinstance(verdict, Verified):
            return verdict
        known = request.connection.get("user")
        if known is None or known[0] is not verdict:  # type: ignore[index]
            known = request.connection["user"] = (verdict, certificate_user(verdict, uid=self._uid))
        return known[1]  # type: ignore[no-any-return,index]

    def discard_verdicts(self) -> None:
        self._authorities.discard_verdicts()


def certificate_user(verified: Verified, *, uid: bool = True) -> User | Rejected | None:
    if not verified.common_name:
        return None
    if not uid:
        verified = verified._replace(uid="", problem="")
    if verified.problem:
        return Rejected(verified.problem)
    extra = ((CREDENTIAL_ID, (f"X509SHA256={verified.digest}",)),)
    return with_groups(User(verified.common_name, verified.uid, verified.organizations, extra))


class TokenFile:
    """Static tokens of `--token-auth-file`, one per line: token,user,uid,"group,group"."""

    def __init__(self, path: str, audiences: Audiences = ()) -> None:
        self._audiences = audiences
        self._users: dict[str, User] = {}
        with Path(path).open(newline="") as file:
            for row in csv.reader(file, skipinitialspace=True):
                if row and len(row) < 3:
                    raise ValueError(f"{path}: a line needs at least token, user name and user uid")
                if not row or not row[0]:
                    continue
                groups = tuple(row[3].split(",")) if len(row) > 3 else ()
                self._users[row[0]] = with_groups(User(row[1], row[2], groups))

    async def authenticate(self, token: str, audiences: Audiences) -> Known | None:
        user = self._users.get(token)
        if user is None:
            return None
        valid_for = accepted(self._audiences, audiences)
        return None if valid_for is None else (user, valid_for)


# Audiences: which of the requested audiences a token is valid for


def accepted(own: Audiences, targets: Audiences) -> Audiences | None:
    """Requested audiences of a token without audiences, which is valid for the server itself. None if no requested
    audience is the server's."""
    if not targets:
        return ()
    return tuple(audience for audience in targets if audience in own) or None


def named_audiences(claim: object, own: Audiences) -> Audiences:
    """Audiences in the `aud` claim of a token: one or several, or the server's if the claim is empty."""
    if isinstance(claim, str):
        return (claim,) if claim else own
    return tuple(claim) if isinstance(claim, list) and claim else own


def common_audiences(own: Audiences, targets: Audiences) -> Audiences:
    """Requested audiences that a token names."""
    return tuple(audience for audience in targets if audience in own)


def audience_mismatch(own: Audiences, targets: Audiences) -> str:
    """Error text for a token with other audiences."""
    return f"token audiences {quoted_list(own)} is invalid for the target audiences {quoted_list(targets)}"
