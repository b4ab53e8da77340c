"""Identity of the user in requests to backends: X-Remote-* headers, which backends trust because of this
server's client certificate."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from kubist.api.resources.context import User
from kubist.base.jsontext.quoting import quoted

if TYPE_CHECKING:
    from kubist.api.config import Config

Fields = list[tuple[str, str]]
PROTOCOLS = "sec-websocket-protocol"
TOKEN_PROTOCOL = "base64url.bearer.authorization."

CHECKER = User("system:kube-aggregator", groups=("system:masters",))
"""User of the server's own availability checks. system:masters may read everything."""
_UNESCAPED = "!#$&'*+^`|~"
_FORBIDDEN = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def identity_headers(user: User) -> Fields:
    """The user as headers. Raises ValueError for control characters: no header can hold them, and a user with other
    characters in their place would be another user."""
    headers = [("X-Remote-User", user.name)]
    if user.uid:
        headers.append(("X-Remote-Uid", user.uid))
    headers += [("X-Remote-Group", group) for group in user.groups]
    for key, values in user.extra:
        name = f"X-Remote-Extra-{quote(key, safe=_UNESCAPED)}"
        headers += [(name, value) for value in values]
    for name, value in headers:
        if _FORBIDDEN.search(value):
            raise ValueError(f"net/http: invalid header field value for {quoted(name)}")
    return headers


class Credentials:
    """Names of headers with credentials or identities of clients. They are never sent to backends.

    This server sends X-Remote-* itself. The front proxy's headers can have other names (`--requestheader-*`).
    A backend may trust those too, from any client of this server.
    """

    def __init__(self, config: Config) -> None:
        exact = (
            *config.requestheader_username_headers,
            *config.requestheader_uid_headers,
            *config.requestheader_group_headers,
        )
        self._names = frozenset(("authorization", *(name.strip().lower() for name in exact)))
        prefixes = (prefix.strip().lower() for prefix in config.requestheader_extra_headers_prefix)
        self._prefixes = ("impersonate-", "x-remote-", *filter(None, prefixes))

    def named(self, header: str) -> bool:
        """Whether a header (in lower case) is one of them. Underscores count as hyphens, because some servers treat
        them alike."""
        return any(
            name in self._names or name.startswith(self._prefixes)
            for name in {header, header.replace("_", "-")}
        )


def without_token(protocols: str) -> str:
    """Subprotocols of a WebSocket without those that carry a bearer token."""
    offered = (protocol.strip() for protocol in protocols.split(","))
    return ", ".join(protocol for protocol in offered if not protocol.lower().startswith(TOKEN_PROTOCOL))
