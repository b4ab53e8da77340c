"""A server in memory that has no socket. Requests are calls of its application."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson

from kubist.api.resources.context import User
from kubist.api.resources.resource import Resource
from kubist.base.http.limits import Limits
from kubist.base.http.messages import Headers, Request, Response
from kubist.model.meta.object import Object
from kubist.server.server import Server

ADMIN = User("kubist-validate", groups=("system:masters", "system:authenticated"))
WITHOUT = ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook", "ResourceQuota")
"""Admission plugins that need other servers, or the usage that a control loop counts."""
JSON, YAML, APPLY = "application/json", "application/yaml", "application/apply-patch+yaml"


@dataclass(frozen=True)
class Identity:
    """User that sends requests, by impersonation. Without a name, the administrator sends them."""

    name: str = ""
    groups: tuple[str, ...] = ()


@dataclass
class Answer:
    """Response to a request."""

    code: int
    headers: Headers = field(default_factory=list)
    body: Any = None

    @property
    def is_success(self) -> bool:
        return self.code < 400

    @property
    def status(self) -> Object:
        """Status of an error. A page that is no Status becomes one."""
        if isinstance(self.body, dict) and self.body.get("kind") == "Status":
            return self.body
        return {
            "code": self.code,
            "reason": "NotFound" if self.code == 404 else "",
            "message": str(self.body),
        }


class _Administrator:
    """Authenticates every request as the administrator: nobody else can reach this server."""

    def user(self, request: Request) -> User:
        return ADMIN


class OfflineServer(Server):
    """Server without a listening socket, control loops, and calls to webhooks and aggregated servers."""

    async def open(self) -> None:
        """Fills the store with the bootstrap objects and starts to serve CRDs."""
        await self.start_behind(self.config.secure_port)
        self.api.authentication.requests.insert(0, _Administrator())

    async def close(self) -> None:
        await self.stop(0.0)

    async def send(
        self,
        method: str,
        path: str,
        body: bytes,
        *,
        query: str = "",
        content_type: str = JSON,
        identity: Identity | None = None,
    ) -> Answer:
        """Response to a request, as any client would get it."""
        headers = {"content-type": content_type, "accept": JSON}
        repeated: dict[str, list[str]] | None = None
        if identity is not None and identity.name:
            headers["impersonate-user"] = identity.name
            if identity.groups:
                headers["impersonate-group"] = ", ".join(identity.groups)
                repeated = {"impersonate-group": list(identity.groups)}
        request = Request(method, path, query, headers, body, repeated=repeated)
        if len(body) > Limits().body_bytes:
            request.body, request.body_too_large = b"", True
        answer = await self.api(request)
        if not isinstance(answer, Response):
            return Answer(400, [], "the server opened a stream")
        content = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
        try:
            return Answer(answer.status, answer.headers, orjson.loads(content))
        except orjson.JSONDecodeError:
            return Answer(answer.status, answer.headers, content.decode("utf-8", "replace").strip())

    def find(self, api_version: str, kind: str) -> Resource | None:
        group, _, version = api_version.rpartition("/")
        return self.api.cluster.find_kind(group, version, kind)
