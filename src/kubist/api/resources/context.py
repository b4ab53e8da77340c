"""Context of a request, which is passed from the handler chain through the verbs to kinds and admission.

Kinds and admission read and write other objects through `Context.objects`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from kubist.model.meta import times
from kubist.model.meta.object import Object
from kubist.model.meta.objectmeta import new_uid

if TYPE_CHECKING:
    from kubist.api.config import Config
    from kubist.api.request import RequestInfo
    from kubist.api.resources.allocations import Allocation
    from kubist.api.resources.reinvocation import Reinvocation
    from kubist.api.resources.resource import Resource
    from kubist.base.http.client.pool import Pool
    from kubist.base.http.messages import Answer, Headers, Request


@dataclass(slots=True, frozen=True)
class User:
    """User of a request, authenticated or anonymous. `extra` values are lists of strings, as in UserInfo."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def info(self) -> Object:
        """User as an authentication.k8s.io UserInfo."""
        info: Object = {"username": self.name}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(values) for key, values in self.extra}
        return info


class Tokens(Protocol):
    """Signs and verifies service account tokens. `kubist.api.filters.authentication.tokens` implements it."""

    @property
    def audiences(self) -> tuple[str, ...]:
        """Default audiences of a token: those of the API server."""
        ...

    def sign(self, claims: dict[str, Any]) -> str: ...

    def verify(self, token: str) -> dict[str, Any]: ...


@dataclass(slots=True)
class Rules:
    """Permissions of a user from the rules of roles, in the order of evaluation."""

    resource_rules: list[Object]
    non_resource_rules: list[Object]
    incomplete: bool = False
    error: str = ""


class Objects(Protocol):
    """Client for other objects of the cluster, for kinds, admission and control loops. Reads come from the cache;
    each returns a new dict that the caller may change. `group` "" is the core group. Objects are in the stored
    version."""

    connections: Pool | None
    """Idle connections to webhooks and backends; None: connections are not kept."""

    def get(self, resource: str, name: str, namespace: str = "", *, group: str = "") -> Object | None: ...

    def list(self, resource: str, namespace: str | None = "", *, group: str = "") -> Iterator[Object]:
        """Objects of a namespace. None lists all namespaces; cluster-scoped kinds ignore it."""
        ...

    async def create(self, resource: str, obj: Object, namespace: str = "", *, group: str = "") -> Object:
        """Creates an object through the kind's strategy (defaults, preparation, validation), without admission and
        RBAC."""
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
        """Compare-and-swap loop. `change` edits the object in place and returns it, or returns None to leave it. No
        strategy hooks run; the result of `change` is stored as it is. Raises 404 if the object does not exist."""
        ...

    async def delete(
        self, resource: str, name: str, namespace: str = "", *, group: str = "", **options: Any
    ) -> Object | None:
        """Deletes as the delete verb does (grace period, finalizers, propagation), without admission and RBAC.
        `options` are DeleteOptions fields: gracePeriodSeconds, preconditions, propagationPolicy."""
        ...

    @property
    def node_ports(self) -> Allocation:
        """Allocation of the cluster's node ports."""
        ...

    async def catch_up(self) -> None:
        """Waits until reads show every write that any server acknowledged before this call."""
        ...

    def find_kind(self, group: str, version: str, kind: str) -> Resource | None:
        """Resource, built-in or custom, of a kind; None if the kind is not served."""
        ...

    async def authenticate(
        self, token: str, audiences: tuple[str, ...]
    ) -> tuple[User, tuple[str, ...]] | str | None:
        """Authenticates a bearer token: the user and the audiences that match. Returns an error message or None if
        the token is invalid for these audiences."""
        ...

    async def rules_for(self, user: User, namespace: str) -> Rules:
        """Permissions of a user in a namespace, as far as the authorizers can list them."""
        ...

    async def granted(self, user: User, namespace: str, wanted: Sequence[Object]) -> Rules:
        """Permissions of a user that may cover some of the wanted rules. They come from roles and bindings alone, even
        if RBAC is not an authorizer here."""
        ...

    @property
    def tokens(self) -> Tokens | None:
        """Signer of service account tokens; None on a server without a signing key."""
        ...


SIMULATED_LABEL = "kubist.io/simulated"
"""Label of a simulated Node; its value is `true`."""


class Kubelet(Protocol):
    """Answers requests that kube-apiserver passes on to a kubelet. The requests are validated and authorized.
    `kubist.cluster.simulation.kubelet_api` implements it."""

    async def logs(self, ctx: Context, pod: Object, container: str) -> Answer: ...

    async def exec(self, ctx: Context, pod: Object, container: str) -> Answer: ...

    async def attach(self, ctx: Context, pod: Object, container: str) -> Answer: ...

    async def port_forward(self, ctx: Context, pod: Object) -> Answer: ...

    async def proxy(self, ctx: Context, pod: Object, port: int) -> Answer:
        """Answers an HTTP request to a port of the pod."""
        ...


def is_simulated(node: Object) -> bool:
    return bool((node["metadata"].get("labels") or {}).get(SIMULATED_LABEL) == "true")


class Server(Protocol):
    """Parts of a server that kinds and admission use through the context."""

    config: Config
    kubelet: Kubelet | None
    """Kubelet of simulated nodes; None if no node is simulated."""

    @property
    def cluster(self) -> Objects:
        """Client for all objects, used by code inside the server."""
        ...

    @property
    def authorize(self) -> Callable[..., Awaitable[tuple[bool, str]]]:
        """`await authorize(user, verb, group=, resource=, …)` → (allowed, reason); see `Context.authorize`."""
        ...


class Seat(Protocol):
    """Seat of a request in its priority level. `kubist.api.filters.flowcontrol.flowcontrol` implements it."""

    def initialized(self) -> None:
        """Frees the seats of a watch after its initial events."""
        ...

    def leave(self, seconds: float) -> None:
        """Frees the seats of a request. `seconds` is the time since its arrival."""
        ...


class AuditTrail(Protocol):
    """Audit event of a request. `kubist.api.filters.audit.audit` implements it."""

    type: Object
    """kind and apiVersion for a body that does not contain them."""

    def answered(self, answer: Answer) -> None: ...


NOBODY = User("")
"""User of a request that is not authenticated yet."""
AUDIT_ID_LIMIT = 1024
"""Maximum length in characters of a client's Audit-Id in the audit log and the response."""


@dataclass(slots=True)
class Context:
    """One request, from the handler chain through its verb to the kind and to admission.

    The application makes it. Requests for resources have a `verbs.resource_request.ResourceRequest`, which adds
    state that only verbs use."""

    api: Server
    request: Request
    """HTTP request. A request of the server itself has an empty method, path and body."""
    info: RequestInfo
    query: dict[str, str]
    """Decoded query parameters; the first value of repeated ones."""
    user: User = NOBODY
    """Effective user. The handler chain sets it, before and after impersonation."""
    warnings: list[str] = field(default_factory=list)
    """Texts of the Warning headers."""
    response_headers: Headers | tuple[()] = ()
    """Headers that the handler chain adds to the response."""
    audit_annotations: dict[str, str] = field(default_factory=dict)
    trail: AuditTrail | None = None
    seat: Seat | None = None
    is_answered: bool = False
    requested_wait: float = 0.0
    """Seconds that the request waited in vain for a future resource version. They do not count towards slowness."""
    resource: Resource = field(init=False)
    """Resource of the URL; only requests for resources have one."""
    namespace: str = ""
    """Namespace of the URL; empty for a cluster-scoped resource."""
    name: str = ""
    """Name of the object, from the URL or from the object to create."""
    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    operation: str = ""
    """Admission operation: CREATE, UPDATE, DELETE or CONNECT. Set by the admission chain."""
    options: Object | None = None
    """DeleteOptions of a delete, as far as the client set them."""
    reinvocation: Reinvocation | None = None
    """State of mutating admission between its two rounds."""
    _audit_id: str = ""
    _now: str = ""
    _warned: set[str] | None = None
    """Texts of `warnings`, created with the first warning."""

    def set_resource(self, resource: Resource) -> None:
        """Sets the resource that the URL names."""
        info = self.info
        self.resource = resource
        self.namespace = info.namespace if resource.namespaced else ""
        self.name = info.name

    @property
    def verb(self) -> str:
        return self.info.verb

    @property
    def subresource(self) -> str:
        return self.info.subresource

    @property
    def config(self) -> Config:
        return self.api.config

    @property
    def objects(self) -> Objects:
        """Client for other objects of the cluster."""
        return self.api.cluster

    @property
    def now(self) -> str:
        """Time of the request, RFC 3339 in whole seconds; the time of the first use."""
        if not self._now:
            self._now = times.now()
        return self._now

    @property
    def audit_id(self) -> str:
        """Audit ID: the client's Audit-Id header, else generated on first use. The response carries it too."""
        if not self._audit_id:
            self._audit_id = self.request.headers.get("audit-id", "")[:AUDIT_ID_LIMIT] or new_uid()
        return self._audit_id

    def authorize(
        self, verb: str, *, user: User | None = None, **attributes: Any
    ) -> Awaitable[tuple[bool, str]]:
        """`await authorize(verb, group=, resource=, subresource=, namespace=, name=, user=)` → (allowed, reason).
        `field_selector=` and `label_selector=` narrow the check. `user` defaults to the user of the request."""
        return self.api.authorize(self.user if user is None else user, verb, **attributes)

    def warn(self, text: str) -> None:
        """Adds a warning to the response, unless it is already there."""
        warned = self._warned
        if warned is None:
            warned = self._warned = set(self.warnings)
        if text not in warned:
            warned.add(text)
            self.warnings.append(text)
