"""Who asks, as backends are told: X-Remote-* headers, which they believe because of the client certificate."""

from __future__ import annotations

from urllib.parse import quote

from kubist.context import User

Fields = list[tuple[str, str]]

CHECKER = User("system:kube-aggregator", groups=("system:masters",))
"""As whom the server itself asks: one who may see everything."""
_UNESCAPED = "!#$&'*+^`|~"


def identity_headers(user: User) -> Fields:
    found = [("X-Remote-User", user.name)]
    if user.uid:
        found.append(("X-Remote-Uid", user.uid))
    found += [("X-Remote-Group", group) for group in user.groups]
    for key, values in user.extra:
        name = f"X-Remote-Extra-{quote(key, safe=_UNESCAPED)}"
        found += [(name, value) for value in values]
    return found


def claims_identity(name: str) -> bool:
    """Whether a header (lower-case) says who asks: that is for this server to say."""
    return name == "authorization" or name.startswith(("impersonate-", "x-remote-"))
