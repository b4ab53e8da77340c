"""Who asks: front proxy, client certificate, bearer token, anonymous. The first way that knows decides."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kubist.context import User
from kubist.filters.attributes import aggregate
from kubist.http.messages import ClientCertificate, Request
from kubist.meta import status

if TYPE_CHECKING:
    from kubist.filters.authenticationconfig import JWTAuthenticators

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = User("system:anonymous", groups=(UNAUTHENTICATED,))
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
INVALID = "invalid bearer token"

Audiences = tuple[str, ...]
Known = tuple[User, Audiences]
"""A user, and for which of the audiences that were asked for the token is."""


class TokenError(Exception):
    """Why a token is not accepted."""


class TokenAuthenticator(Protocol):
    """Knows some bearer tokens. None: not one of mine. TokenError: one of mine, and not good."""

    async def authenticate(self, token: str, audiences: Audiences) -> Known | None: ...


class RequestAuthenticator(Protocol):
    """Knows some requests otherwise than by a bearer token. None: not one of mine."""

    def user(self, request: Request) -> User | None: ...


class Anonymous(NamedTuple):
    """Whether requests without credentials get in as system:anonymous, and to which paths; no paths mean all."""

    enabled: bool
    paths: frozenset[str] = frozenset()


ANYWHERE = Anonymous(True)


class Authentication:
    """All ways to be known, in order. `audiences` are this server's own names for itself."""

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
        """Those of the tokens' authenticators that fetch keys and follow a file."""

    async def authenticate(self, request: Request, warnings: list[str]) -> User:
        """The user; 401 for a token that nobody knows, or for nothing at all where anonymous is off."""
        for authenticator in self.requests:
            user = authenticator.user(request)
            if user is not None:
                return user
        headers = request.headers
        token = bearer(headers.get("authorization", ""), warnings) or websocket_token(headers)
        if token:
            known, _ = await self._known(token, self.audiences)
            if known is None:
                raise status.unauthorized()
            return known[0]
        enabled, paths = self.anonymous
        if enabled and (not paths or request.path in paths):
            return ANONYMOUS
        raise status.unauthorized()

    async def review(self, token: str, audiences: Audiences) -> Known | str:
        """Whose token this is, and for which of the audiences; or why it is nobody's.

        It is read as a header would have it: what is no token there is anonymous here."""
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
    """A known user is also one of the authenticated."""
    if AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return User(user.name, user.uid, (*user.groups, AUTHENTICATED), user.extra)


def bearer(header: str, warnings: list[str]) -> str:
    """The token of an Authorization header; empty if there is none in it."""
    parts = header.strip().split(" ", 2)
    if len(parts) < 2 or parts[0].lower() != "bearer":
        return ""
    if not parts[1] and len(parts) == 3:
        warnings.append(
            "the provided Authorization header contains extra space before the bearer token, and is ignored"
        )
    return parts[1]


_PROTOCOL = "base64url.bearer.authorization.k8s.io."


def websocket_token(headers: dict[str, str]) -> str:
    """The token that a browser can only send as one of the protocols of its WebSocket."""
    protocols = headers.get("sec-websocket-protocol", "")
    if _PROTOCOL not in protocols or headers.get("upgrade", "").lower() != "websocket":
        return ""
    from kubist.filters.tokens import decode

    for protocol in protocols.split(","):
        if protocol.strip().startswith(_PROTOCOL):
            try:
                return decode(protocol.strip()[len(_PROTOCOL) :]).decode()
            except ValueError:
                return ""
    return ""


class ClientCertificates:
    """A certificate that TLS has verified names its holder: CN the user, O the groups."""

    def __init__(self, trusted: Callable[[bytes], bool] = lambda der: True) -> None:
        self._trusted = trusted
        """Whether the certificate is from an authority for clients, where others are also let in by TLS."""

    def user(self, request: Request) -> User | None:
        certificate = request.client_certificate
        if certificate is None or not certificate.common_name:
            return None
        known = request.connection.get("user")
        if isinstance(known, User):
            return known
        if not self._trusted(certificate.der):
            return None
        user = certificate_user(certificate)
        request.connection["user"] = user
        return user


def certificate_user(certificate: ClientCertificate) -> User:
    digest = hashlib.sha256(certificate.der).hexdigest()
    extra = ((CREDENTIAL_ID, (f"X509SHA256={digest}",)),)
    return with_groups(User(certificate.common_name, certificate.uid, certificate.organizations, extra))


def accepted(own: Audiences, wanted: Audiences) -> Audiences | None:
    """For whom a token is that names no audience: the server itself. None: the wanted ones are all others."""
    if not wanted:
        return ()
    return tuple(audience for audience in wanted if audience in own) or None


class TokenFile:
    """The static tokens of `--token-auth-file`: token,user,uid,"group,group"."""

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
        found = accepted(self._audiences, audiences)
        return None if found is None else (user, found)
