"""What a request carries from the filters through the verbs to the kinds.

Kinds and admission see the cluster through `Context.objects`; the verbs fill the rest in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from kubist.config import Config
    from kubist.http.messages import Request
    from kubist.http.pool import Pool
    from kubist.resources.allocation import Allocation
    from kubist.resources.reinvocation import Reinvocation
    from kubist.resources.resource import Resource

Object = dict[str, Any]


@dataclass(slots=True, frozen=True)
class User:
    """Who asks. `extra` values are lists of strings, as in UserInfo."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def info(self) -> Object:
        """The user as an authentication.k8s.io UserInfo."""
        info: Object = {"username": self.name}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(values) for key, values in self.extra}
        return info


class Tokens(Protocol):
    """Signs and verifies the tokens of service accounts (`kubist.filters.tokens`)."""

    @property
    def audiences(self) -> tuple[str, ...]:
        """For whom a token is if nothing is said: the API server itself."""
        ...

    def sign(self, claims: dict[str, Any]) -> str: ...

    def verify(self, token: str) -> dict[str, Any]: ...


@dataclass(slots=True)
class Rules:
    """Everything that the rules of roles allow somebody, in the order in which it was found."""

    resource_rules: list[Object]
    non_resource_rules: list[Object]
    incomplete: bool = False
    error: str = ""


class Objects(Protocol):
    """The cluster's objects for code that needs others than its own. Reads are from the cache, as plain dicts
    that the caller owns (a fresh parse; free to change). `group` "" is core; the stored version is given."""

    connections: Pool | None
    """Idle connections to webhooks and backends; None keeps none."""

    def get(self, resource: str, name: str, namespace: str = "", *, group: str = "") -> Object | None: ...

    def list(self, resource: str, namespace: str | None = "", *, group: str = "") -> Iterator[Object]:
        """All objects of a namespace, or with None (and for cluster-scoped kinds) all there are."""
        ...

    async def create(self, resource: str, obj: Object, namespace: str = "", *, group: str = "") -> Object:
        """Create through the kind's strategy (defaults, preparation, validation), without admission or RBAC."""
        ...

    async def mutate(
        self,
        resource: str,
        name: str,
        namespace: str,
        change: Callable[[Object], Object | None],
        *,
        group: str = "",
    ) -> Object:
        """Read, change, write if unchanged meanwhile, else again. `change` edits the object in place and
        returns it, or returns None to leave it. No strategy hooks run; the stored bytes are what `change`
        returned. Raises not_found."""
        ...

    async def delete(
        self, resource: str, name: str, namespace: str = "", *, group: str = "", **options: Any
    ) -> Object | None:
        """Delete as the delete verb does (grace, finalizers, propagation), without admission or RBAC. `options`
        are DeleteOptions fields: gracePeriodSeconds, preconditions, propagationPolicy."""
        ...

    @property
    def node_ports(self) -> Allocation:
        """The node ports of the cluster that are allocated."""
        ...

    async def catch_up(self) -> None:
        """Wait until reads show every write that was answered before this call, by whichever server."""
        ...

    def find_kind(self, group: str, version: str, kind: str) -> Resource | None:
        """The resource, built-in or custom, whose objects are of a kind."""
        ...

    async def authenticate(
        self, token: str, audiences: tuple[str, ...]
    ) -> tuple[User, tuple[str, ...]] | str | None:
        """Whose bearer token this is, and for which of the audiences. If it is nobody's, or for others: why,
        where more can be said than that it is invalid."""
        ...

    async def rules_for(self, user: User, namespace: str) -> Rules:
        """What a user may do in a namespace, as far as rules can say."""
        ...

    def granted(self, user: User, namespace: str) -> Rules:
        """What roles and bindings alone give a user, whether or not they are what decides here."""
        ...

    @property
    def tokens(self) -> Tokens | None:
        """What signs service account tokens; None on a server without a signing key."""
        ...


Authorize = Callable[..., Awaitable[tuple[bool, str]]]


@dataclass(slots=True)
class Context:
    """One request on one resource."""

    resource: Resource
    verb: str
    user: User
    config: Config
    objects: Objects
    authorize: Authorize
    """`await authorize(verb, group=, resource=, subresource=, namespace=, name=, user=)` → (allowed, reason);
    `field_selector=` and `label_selector=` narrow what is asked for."""
    request: Request | None = None
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    query: dict[str, str] = field(default_factory=dict)
    """Query parameters, decoded; of repeated ones the first."""
    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    user_agent: str = ""
    warnings: list[str] = field(default_factory=list)
    now: str = ""
    """The request's time, RFC 3339 with whole seconds."""
    audit_annotations: dict[str, str] = field(default_factory=dict)
    operation: str = ""
    """What admission is asked about: CREATE, UPDATE, DELETE or CONNECT; set by the chain."""
    options: Object = field(default_factory=dict)
    """The DeleteOptions of a deletion, as far as they were given."""
    reinvocation: Reinvocation | None = None
    """What mutating admission remembers between its two rounds."""
    _warned: set[str] | None = None
    """The texts of `warnings`, once there is one."""

    def warn(self, text: str) -> None:
        """Add a warning to the answer, unless it is there already."""
        warned = self._warned
        if warned is None:
            warned = self._warned = set(self.warnings)
        if text not in warned:
            warned.add(text)
            self.warnings.append(text)
