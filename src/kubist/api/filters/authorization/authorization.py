"""Authorization of requests by the authorizers of `--authorization-mode`, in order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kubist.api.filters.authorization.query import AuthorizationQuery, aggregate
from kubist.api.filters.authorization.rbac import RBAC
from kubist.api.resources.context import Rules, User

if TYPE_CHECKING:
    from kubist.api.filters.authorization.configuration import AuthorizationFile

MASTERS = "system:masters"
EVERYTHING = Rules(
    [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
)


class Verdict(NamedTuple):
    """Result of authorization. `denied`: an authorizer denied the request, so no further authorizer was asked. `error`:
    errors of failed authorizers, which may be why the request was not allowed."""

    allowed: bool
    reason: str = ""
    denied: bool = False
    error: str = ""


ALLOWED = Verdict(True)


class Undecided(Exception):
    """An authorizer failed. `denied`: its failure policy is to deny the request."""

    def __init__(self, error: str, *, denied: bool = False, reason: str = "") -> None:
        super().__init__(error)
        self.denied = denied
        self.reason = reason


class AuthorizationFailed(Exception):
    """No authorizer allowed the request, and at least one failed."""


class Authorizer(Protocol):
    """Allows (True), denies (False) or has no opinion (None), with a reason. Raises `Undecided` if it fails."""

    async def decide(self, attributes: AuthorizationQuery) -> tuple[bool | None, str]: ...

    async def rules(self, user: User, namespace: str) -> Rules:
        """Rules of a user in a namespace, for SelfSubjectRulesReview. May be incomplete."""
        ...


class Authorization:
    """The authorizers in order. The first one with an opinion decides. If none has an opinion, the request is not
    allowed.

    Members of system:masters are allowed everything in every mode.
    """

    def __init__(
        self, authorizers: Sequence[Authorizer], rbac: RBAC, file: AuthorizationFile | None = None
    ) -> None:
        self.authorizers = list(authorizers)
        self._added: list[Authorizer] = []
        """Authorizers added by the test bench. They stay when the configured ones are replaced."""
        self.file = file
        """The configuration file of the authorizers, or None."""
        self.rbac = rbac
        """RBAC rules. They are present in other modes too, because they limit the permissions that a user may grant
        (escalation check)."""

    def replace_configured(self, authorizers: Sequence[Authorizer]) -> None:
        """Replaces the configured authorizers."""
        self.authorizers = [*self._added, *authorizers]

    def add_first(self, authorizer: Authorizer) -> None:
        """Adds an authorizer that is asked before all others."""
        self._added.insert(0, authorizer)
        self.authorizers = [authorizer, *self.authorizers]

    def remove(self, authorizer: Authorizer) -> None:
        """Removes an authorizer that `add_first` added. Running requests may still ask it."""
        self._added.remove(authorizer)
        self.authorizers = [each for each in self.authorizers if each is not authorizer]

    async def authorize(self, attributes: AuthorizationQuery) -> tuple[bool, str]:
        verdict = await self.verdict(attributes)
        return verdict.allowed, verdict.reason

    async def verdict(self, attributes: AuthorizationQuery) -> Verdict:
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

    async def rules(self, user: User, namespace: str) -> Rules:
        rule_sets = [await authorizer.rules(user, namespace) for authorizer in self.authorizers]
        return Rules(
            list(chain.from_iterable(rules.resource_rules for rules in rule_sets)),
            list(chain.from_iterable(rules.non_resource_rules for rules in rule_sets)),
            incomplete=any(rules.incomplete for rules in rule_sets),
            error=aggregate(rules.error for rules in rule_sets if rules.error),
        )


class AlwaysAllow:
    async def decide(self, attributes: AuthorizationQuery) -> tuple[bool | None, str]:
        return True, ""

    async def rules(self, user: User, namespace: str) -> Rules:
        return EVERYTHING


class AlwaysDeny:
    async def decide(self, attributes: AuthorizationQuery) -> tuple[bool | None, str]:
        return None, "Everything is forbidden."

    async def rules(self, user: User, namespace: str) -> Rules:
        return Rules([], [])
