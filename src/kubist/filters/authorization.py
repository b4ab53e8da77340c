"""May they: a decision per request, by the authorizers of `--authorization-mode`, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kubist.filters.attributes import Attributes, aggregate
from kubist.filters.rbac import RBAC
from kubist.resources.context import Rules, User

if TYPE_CHECKING:
    from kubist.filters.authorizationconfig import AuthorizationFile

MASTERS = "system:masters"
EVERYTHING = Rules(
    [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
)


class Verdict(NamedTuple):
    """Whether a request is allowed, and why. `denied`: an authorizer said no, so that no other was asked. `error`: why
    an authorizer could not tell; a request that is not allowed may have failed for that."""

    allowed: bool
    reason: str = ""
    denied: bool = False
    error: str = ""


ALLOWED = Verdict(True)


class Undecided(Exception):
    """An authorizer that failed. `denied`: it says no then."""

    def __init__(self, error: str, *, denied: bool = False, reason: str = "") -> None:
        super().__init__(error)
        self.denied = denied
        self.reason = reason


class AuthorizationFailed(Exception):
    """A request that nobody allowed, and of which one authorizer could not tell."""


class Authorizer(Protocol):
    """Says yes (True), no (False), or that it does not know (None); and why. `Undecided` if it fails."""

    async def decide(self, attributes: Attributes) -> tuple[bool | None, str]: ...

    def rules(self, user: User, namespace: str) -> Rules:
        """What a user may do in a namespace, as far as rules can say."""
        ...


class Authorization:
    """The authorizers in order; the first that knows decides, and if none does the answer is no.

    Members of system:masters may do everything, whatever the mode.
    """

    def __init__(
        self, authorizers: Sequence[Authorizer], rbac: RBAC, file: AuthorizationFile | None = None
    ) -> None:
        self.authorizers = list(authorizers)
        self.file = file
        """The file that the authorizers follow, if there is one."""
        self.rbac = rbac
        """What roles give, also where others decide: it bounds what may be given on."""

    async def authorize(self, attributes: Attributes) -> tuple[bool, str]:
        verdict = await self.verdict(attributes)
        return verdict.allowed, verdict.reason

    async def verdict(self, attributes: Attributes) -> Verdict:
        if MASTERS in attributes.user.groups:
            return ALLOWED
        reasons = []
        errors = []
        for authorizer in self.authorizers:
            try:
                allowed, reason = await authorizer.decide(attributes)
            except Undecided as error:
                if error.denied:
                    return Verdict(False, error.reason, True, str(error))
                errors.append(str(error))
                continue
            if allowed is not None:
                return Verdict(allowed, reason, not allowed)
            if reason:
                reasons.append(reason)
        return Verdict(False, "\n".join(reasons), False, aggregate(errors) if errors else "")

    def rules(self, user: User, namespace: str) -> Rules:
        found = [authorizer.rules(user, namespace) for authorizer in self.authorizers]
        return Rules(
            [rule for rules in found for rule in rules.resource_rules],
            [rule for rules in found for rule in rules.non_resource_rules],
            incomplete=any(rules.incomplete for rules in found),
            error=aggregate(rules.error for rules in found if rules.error),
        )


class AlwaysAllow:
    async def decide(self, attributes: Attributes) -> tuple[bool | None, str]:
        return True, ""

    def rules(self, user: User, namespace: str) -> Rules:
        return EVERYTHING


class AlwaysDeny:
    async def decide(self, attributes: Attributes) -> tuple[bool | None, str]:
        return None, "Everything is forbidden."

    def rules(self, user: User, namespace: str) -> Rules:
        return Rules([], [])
