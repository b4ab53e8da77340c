"""Authentication by front proxy: the client has a certificate of the proxy CA and names the user in headers."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

from kubist.filters.authentication import with_groups
from kubist.filters.clientca import ClientCA, Rejected, Verified
from kubist.http.messages import Request
from kubist.resources.context import User


class RequestHeaders:
    """The headers of the `--requestheader-*` flags, accepted only from clients with a certificate of the proxy CA."""

    def __init__(
        self,
        authorities: ClientCA,
        allowed_names: Sequence[str],
        usernames: Sequence[str],
        groups: Sequence[str],
        extra_prefixes: Sequence[str],
        uids: Sequence[str] = (),
    ) -> None:
        self._authorities = authorities
        self._allowed_names = frozenset(allowed_names)
        self._usernames = [name.lower() for name in usernames]
        self._groups = [name.lower() for name in groups]
        self._extra_prefixes = [prefix.lower() for prefix in extra_prefixes]
        self._uids = [name.lower() for name in uids]

    def user(self, request: Request) -> User | Rejected | None:
        verdict = self._authorities.verify(request)
        if not isinstance(verdict, Verified):
            return verdict
        if self._allowed_names and verdict.common_name not in self._allowed_names:
            return Rejected(f"x509: subject with cn={verdict.common_name} is not in the allowed list")
        name = _first(request, self._usernames)
        if not name:
            return None
        groups = [value for header in self._groups for value in request.header_values(header) if value]
        extra: dict[str, list[str]] = {}
        for prefix in self._extra_prefixes:
            for header in request.headers:
                if header.startswith(prefix):
                    values = extra.setdefault(unquote(header[len(prefix) :]), [])
                    values += request.header_values(header)
        pairs = tuple((key, tuple(values)) for key, values in extra.items())
        return with_groups(User(name, _first(request, self._uids), tuple(groups), pairs))

    def discard_verdicts(self) -> None:
        self._authorities.discard_verdicts()


def _first(request: Request, headers: list[str]) -> str:
    return next((value for header in headers for value in request.header_values(header)[:1] if value), "")
