"""May they: a decision per request, by the authorizers of `--authorization-mode`, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kubist.context import Rules, User


@dataclass(slots=True, frozen=True)
class Attributes:
    """What is to be decided: a user and a verb on a resource, or on a path that is none."""

    user: User
    verb: str
    path: str = ""
    is_resource: bool = False
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class Authorizer(Protocol):
    """Says yes (True), no (False), or that it does not know (None); and why."""

    def decide(self, attributes: Attributes) -> tuple[bool | None, str]: ...


class Authorization:
    """The authorizers in order; the first that knows decides, and if none does the answer is no."""

    def __init__(self, authorizers: Sequence[Authorizer]) -> None:
        self._authorizers = list(authorizers)

    async def authorize(self, attributes: Attributes) -> tuple[bool, str]:
        reasons = []
        for authorizer in self._authorizers:
            allowed, reason = authorizer.decide(attributes)
            if allowed is not None:
                return allowed, reason
            if reason:
                reasons.append(reason)
        return False, "\n".join(reasons)

    def rules(self, user: User, namespace: str) -> Rules:
        """What a user may do in a namespace, as far as rules can say."""
        return Rules([], [], incomplete=True)


class Masters:
    """The group system:masters may do everything, whatever the mode."""

    def decide(self, attributes: Attributes) -> tuple[bool | None, str]:
        return (True, "") if "system:masters" in attributes.user.groups else (None, "")


class AlwaysAllow:
    def decide(self, attributes: Attributes) -> tuple[bool | None, str]:
        return True, ""


class AlwaysDeny:
    def decide(self, attributes: Attributes) -> tuple[bool | None, str]:
        return None, "Everything is forbidden."


PUBLIC_PATHS = ("/healthz", "/livez", "/readyz", "/version", "/version/")


class Basics:
    """What anybody may read without any role: health and version; and the authenticated, discovery."""

    def decide(self, attributes: Attributes) -> tuple[bool | None, str]:
        if attributes.is_resource or attributes.verb != "get":
            return None, ""
        if attributes.path in PUBLIC_PATHS:
            return True, ""
        if "system:authenticated" in attributes.user.groups:
            path = attributes.path
            if path in ("/api", "/apis", "/openapi") or path.startswith(
                ("/api/", "/apis/", "/openapi/", "/healthz/")
            ):
                return True, ""
        return None, ""
