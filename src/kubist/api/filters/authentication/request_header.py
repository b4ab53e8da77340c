"""Authentication by front proxy: the client has a certificate of the proxy CA and names the user in headers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from kubist.api.filters.authentication.authentication import with_groups
from kubist.api.filters.authentication.client_ca import ClientCA, Rejected, Verified
from kubist.api.resources.context import User
from kubist.base.http.messages import Request
from kubist.base.jsontext.quoting import quoted
from kubist.model import feature_gates

if TYPE_CHECKING:
    from kubist.api.config import Config

log = logging.getLogger("kubist.filters")

STANDARD = {
    "requestheader-username-headers": "X-Remote-User header",
    "requestheader-group-headers": "X-Remote-Group header",
    "requestheader-extra-headers-prefix": "X-Remote-Extra- header prefix",
    "requestheader-uid-headers": "X-Remote-Uid header",
}
"""Flags that name headers → the header that this server sends to aggregated API servers."""


def check_flags(config: Config) -> None:
    """Raises ValueError for invalid `--requestheader-*` flags. Warns about header names that break API aggregation."""
    uid = "requestheader-uid-headers"
    if config.requestheader_uid_headers and not feature_gates.enabled(
        config.feature_gates, "RemoteRequestHeaderUID"
    ):
        raise ValueError(f"--{uid} requires the feature gate RemoteRequestHeaderUID")
    for flag in (*STANDARD, "requestheader-allowed-names"):
        values: tuple[str, ...] = getattr(config, flag.replace("-", "_"))
        if not all(value.strip() for value in values):
            raise ValueError(f"empty value in {quoted(flag)}")
        header = STANDARD.get(flag, "")
        if values and header and header.partition(" ")[0].lower() not in map(str.lower, values):
            problem = (
                f"--{flag} is set without specifying the standard {header} - API aggregation will not work"
            )
            if flag == uid:
                raise ValueError(problem)
            log.warning(problem)


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
