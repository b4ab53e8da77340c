"""Who asks: client certificates, bearer tokens, anonymous. The first authenticator that knows decides."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from kubist.context import User
from kubist.http.messages import Request
from kubist.meta import status

AUTHENTICATED = "system:authenticated"
ANONYMOUS = User("system:anonymous", groups=("system:unauthenticated",))


class TokenAuthenticator(Protocol):
    """Knows some bearer tokens. None: not one of mine."""

    async def user(self, token: str) -> User | None: ...


class Authentication:
    """All ways to be known, in order: certificate, then token, then anonymous if allowed."""

    def __init__(self, tokens: Sequence[TokenAuthenticator], *, anonymous: bool) -> None:
        self.tokens = list(tokens)
        self.anonymous = anonymous

    async def authenticate(self, request: Request, warnings: list[str]) -> User:
        """The user; 401 for a token that nobody knows, or for nothing at all where anonymous is off."""
        certificate = request.client_certificate
        if certificate is not None and certificate.common_name:
            return with_groups(User(certificate.common_name, certificate.uid, certificate.organizations))
        token = bearer(request.headers.get("authorization", ""), warnings)
        if token:
            for authenticator in self.tokens:
                user = await authenticator.user(token)
                if user is not None:
                    return with_groups(user)
            raise status.unauthorized()
        if self.anonymous:
            return ANONYMOUS
        raise status.unauthorized()

    async def review(self, token: str, audiences: tuple[str, ...]) -> tuple[User, tuple[str, ...]] | None:
        """Whose token this is, and for which of the audiences; None if it is nobody's."""
        for authenticator in self.tokens:
            user = await authenticator.user(token)
            if user is not None:
                return with_groups(user), audiences
        return None


def with_groups(user: User) -> User:
    """A known user is also one of the authenticated."""
    if AUTHENTICATED in user.groups or "system:unauthenticated" in user.groups:
        return user
    return User(user.name, user.uid, (*user.groups, AUTHENTICATED), user.extra)


def bearer(header: str, warnings: list[str]) -> str:
    """The token of an Authorization header; empty if there is none in it."""
    header = header.strip()
    if not header:
        return ""
    parts = header.split(" ", 2)
    if len(parts) < 2 or parts[0].lower() != "bearer":
        return ""
    if not parts[1] and len(parts) == 3:
        warnings.append(
            "the provided Authorization header contains extra space before the bearer token, and is ignored"
        )
    return parts[1]


class TokenFile:
    """The static tokens of `--token-auth-file`: token,user,uid,"group,group"."""

    def __init__(self, path: str) -> None:
        self._users: dict[str, User] = {}
        with Path(path).open(newline="") as file:
            for row in csv.reader(file, skipinitialspace=True):
                if not row or not row[0].strip():
                    continue
                if len(row) < 3:
                    raise ValueError(f"{path}: a line needs at least token, user name and user uid")
                groups = (
                    tuple(group.strip() for group in row[3].split(",") if group.strip())
                    if len(row) > 3
                    else ()
                )
                self._users.setdefault(row[0], User(row[1], row[2], groups))

    async def user(self, token: str) -> User | None:
        return self._users.get(token)
