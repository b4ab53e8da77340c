"""CEL `authorizer`: checks and decisions.

Evaluation is synchronous. An unknown decision interrupts the evaluation; the decision is then made, and the
evaluation starts again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from kubist.api.resources.context import Context, User
from kubist.model.cel import EvaluationError
from kubist.model.meta import names

Question = tuple[tuple[str, Any], ...]


class Undecided(Exception):
    """Raised for a decision that has not been made yet."""

    def __init__(self, question: Question) -> None:
        super().__init__("undecided")
        self.question = question


class Decisions:
    """Authorization decisions for one request."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._known: dict[Question, Decision] = {}

    def find(self, **question: Any) -> Decision:
        key = tuple(sorted(question.items(), key=lambda item: item[0]))
        decision = self._known.get(key)
        if decision is None:
            raise Undecided(key)
        return decision

    async def decide(self, question: Question) -> None:
        attributes = dict(question)
        allowed, reason = await self._ctx.authorize(attributes.pop("verb"), **attributes)
        self._known[question] = Decision(allowed, reason)


@dataclass(slots=True, frozen=True)
class Decision:
    is_allowed: bool
    why: str

    def allowed(self) -> bool:
        return self.is_allowed

    def reason(self) -> str:
        return self.why

    def errored(self) -> bool:
        return False

    def error(self) -> str:
        return ""


@dataclass(slots=True, frozen=True)
class ResourceCheck:
    decisions: Decisions
    user: User
    group: str
    of: str
    attributes: dict[str, str] = field(default_factory=dict)

    def _with(self, **more: str) -> ResourceCheck:
        return replace(self, attributes={**self.attributes, **more})

    def subresource(self, name: str) -> ResourceCheck:
        return self._with(subresource=name)

    def namespace(self, name: str) -> ResourceCheck:
        return self._with(namespace=name)

    def name(self, name: str) -> ResourceCheck:
        return self._with(name=name)

    def field_selector(self, text: str) -> ResourceCheck:
        """Narrows the check with a selector. Only the node authorizer and webhook authorizers use selectors."""
        return self._with(field_selector=text)

    def label_selector(self, text: str) -> ResourceCheck:
        return self._with(label_selector=text)

    def check(self, verb: str) -> Decision:
        return self.decisions.find(
            verb=verb, user=self.user, group=self.group, resource=self.of, **self.attributes
        )


@dataclass(slots=True, frozen=True)
class GroupCheck:
    decisions: Decisions
    user: User
    group: str

    def resource(self, name: str) -> ResourceCheck:
        if not name.strip():
            raise EvaluationError("resource must not be empty")
        return ResourceCheck(self.decisions, self.user, self.group, name)


@dataclass(slots=True, frozen=True)
class PathCheck:
    decisions: Decisions
    user: User
    path: str

    def check(self, verb: str) -> Decision:
        return self.decisions.find(verb=verb, user=self.user, path=self.path)


class Authorizer:
    """Authorization checks for a user: the requesting user or a service account."""

    def __init__(self, decisions: Decisions, user: User, request: ResourceCheck | None = None) -> None:
        self._decisions = decisions
        self._user = user
        self._request = request

    def __getitem__(self, name: str) -> ResourceCheck:
        if name != "requestResource" or self._request is None:
            raise KeyError(name)
        return self._request

    def path(self, path: str) -> PathCheck:
        if not path.strip():
            raise EvaluationError("path must not be empty")
        return PathCheck(self._decisions, self._user, path)

    def group(self, group: str) -> GroupCheck:
        return GroupCheck(self._decisions, self._user, group)

    def service_account(self, namespace: str, name: str) -> Authorizer:
        if names.dns_subdomain(name):
            raise EvaluationError("Invalid service account name")
        if names.dns_label(namespace):
            raise EvaluationError("Invalid service account namespace")
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        return Authorizer(self._decisions, User(f"system:serviceaccount:{namespace}:{name}", "", groups))
