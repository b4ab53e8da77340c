"""Authentication by bootstrap token: short-lived secrets in kube-system with which new nodes join."""

from __future__ import annotations

import base64
import hmac
import re
from typing import TYPE_CHECKING, Any

from kubist.api.filters.authentication.authentication import Audiences, Known, accepted, with_groups
from kubist.api.resources.context import User
from kubist.base import clock
from kubist.model.meta.times import parse_time

if TYPE_CHECKING:
    from kubist.api.object_store.registry import Registry

TYPE = "bootstrap.kubernetes.io/token"
GROUP = "system:bootstrappers"
_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]")


class BootstrapTokens:
    """Authenticates tokens `id.secret` against the secret `bootstrap-token-<id>` in kube-system."""

    def __init__(self, registry: Registry, audiences: Audiences) -> None:
        self._registry = registry
        self._audiences = audiences

    async def authenticate(self, token: str, audiences: Audiences) -> Known | None:
        parts = _TOKEN.fullmatch(token)
        valid_for = accepted(self._audiences, audiences)
        if parts is None or valid_for is None:
            return None
        secret = self._registry.get("secrets", f"bootstrap-token-{parts[1]}", "kube-system")
        user = _user(secret, parts[1], parts[2]) if secret is not None else None
        return None if user is None else (user, valid_for)


def _user(secret: dict[str, Any], token_id: str, token_secret: str) -> User | None:
    """The user of a token; None if the secret has another type, does not match, has expired or has invalid groups."""
    if secret["metadata"].get("deletionTimestamp") or secret.get("type") != TYPE:
        return None
    data = {key: base64.b64decode(value) for key, value in (secret.get("data") or {}).items()}
    if not hmac.compare_digest(data.get("token-secret", b""), token_secret.encode()):
        return None
    if data.get("token-id") != token_id.encode() or data.get("usage-bootstrap-authentication") != b"true":
        return None
    expires = data.get("expiration", b"").decode(errors="replace")
    try:
        if expires and parse_time(expires) <= clock.now():
            return None
    except ValueError:
        return None
    groups = [
        group for group in data.get("auth-extra-groups", b"").decode(errors="replace").split(",") if group
    ]
    if not all(_GROUP.fullmatch(group) for group in groups):
        return None
    return with_groups(User(f"system:bootstrap:{token_id}", groups=tuple(sorted({GROUP, *groups}))))
