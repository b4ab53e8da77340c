"""Handlers of non-resource paths: discovery, version, health, OpenAPI, and the index of paths."""

from __future__ import annotations

import platform
import sys
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import orjson

from kubist.api.aggregation.aggregation import Aggregation
from kubist.api.config import KUBERNETES_VERSION, Config
from kubist.api.discovery import documents
from kubist.api.discovery.documents import SUFFIX, Aggregated, asked_for
from kubist.api.discovery.health import Health
from kubist.api.representation.protobuf import enveloped
from kubist.api.representation.representation import indented
from kubist.api.request import RequestInfo, query_values, split
from kubist.api.resources.context import User
from kubist.api.resources.resource import Resources
from kubist.base.http.messages import Answer, Request, Response
from kubist.model import feature_gates
from kubist.model.codec import negotiate, yaml
from kubist.model.meta import status

if TYPE_CHECKING:
    # Saves start-up time: loaded when a client asks for a document.
    from kubist.api.discovery.openapi import OpenAPI
    from kubist.api.discovery.profiling import Profiling

VERSION = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": KUBERNETES_VERSION,
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "",
    "goVersion": f"python{sys.version_info.major}.{sys.version_info.minor}",
    "compiler": platform.python_implementation().lower(),
    "platform": f"{sys.platform}/{platform.machine()}".replace("x86_64", "amd64").replace("aarch64", "arm64"),
}
JSON = [(b"Content-Type", b"application/json")]
ROUTED = negotiate.Endpoint(literal=True)
CONTROL = "/kubist/v1/"
OTHERS = ("/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version")


def plain_not_found() -> Response:
    headers = [(b"Content-Type", b"text/plain; charset=utf-8"), (b"X-Content-Type-Options", b"nosniff")]
    return Response(404, headers, b"404 page not found\n")


class Paths:
    """Non-resource paths of one server."""

    def __init__(self, config: Config, resources: Resources, health: Health) -> None:
        self.config = config
        self.resources = resources
        self.health = health
        self.others: dict[str, Callable[[Request], Answer | Awaitable[Answer]]] = {}
        """Handlers of paths that other modules register."""
        self.control: Callable[[Request, str, User], Awaitable[Answer]] | None = None
        """Handler of the paths below /kubist/v1/, which no index shows."""
        self.set_verbosity: Callable[[int], None] = lambda _: None
        """Changes the log level of the application."""
        self._profiling: Profiling | None = None
        self._aggregation: Aggregation | None = None
        self._hashes = feature_gates.enabled(config.feature_gates, "StorageVersionHash")
        self._aggregated = {
            "api": Aggregated(resources, core=True),
            "apis": Aggregated(resources, core=False),
        }

    @cached_property
    def openapi(self) -> OpenAPI:
        # Saves start-up time: loaded when a client asks for a document.
        from kubist.api.discovery.openapi import OpenAPI

        return OpenAPI(self.resources, self.config.url_prefix)

    def merge(self, aggregation: Aggregation) -> None:
        """Adds the groups of aggregated API servers to discovery."""
        self._aggregation = self._aggregated["apis"].aggregation = aggregation

    async def answer(self, request: Request, info: RequestInfo, user: User, query: dict[str, str]) -> Answer:
        path = info.path
        if path in self.others:
            answer = self.others[path](request)
            return await answer if isinstance(answer, Awaitable) else answer
        parts = split(path)
        if path in ("", "/", "/index.html"):
            return Response(200, list(JSON), indented({"paths": self._index()}))
        if not parts:
            return plain_not_found()
        if parts[0] in ("healthz", "livez", "readyz"):
            excluded = query_values(request.query, "exclude")
            return await self.health.answer(path, query, excluded) or plain_not_found()
        if parts == ["version"]:
            return self._version(request)
        if parts[0] == "version":
            raise status.no_such_path()
        if parts[0] in ("api", "apis"):
            return self._discovery(request, parts, query)
        if parts[0] == "openapi":
            return await self.openapi.answer(request, path, query) or plain_not_found()
        if parts[0] == "debug" and self.config.profiling:
            return await self._debug(request, path) or plain_not_found()
        if self.control is not None and path.startswith(CONTROL):
            return await self.control(request, path.removeprefix(CONTROL), user)
        return plain_not_found()

    async def _debug(self, request: Request, path: str) -> Response | None:
        # Saves start-up time: loaded with the first request for a profile.
        from kubist.api.discovery.profiling import Profiling

        if self._profiling is None:
            self._profiling = Profiling(self.set_verbosity)
        return await self._profiling.answer(request, path)

    def _index(self) -> list[str]:
        paths = ["/api", "/api/v1", "/apis", "/apis/", *OTHERS, *self.others]
        for name in documents.group_names(self.resources):
            paths.append(f"/apis/{name}")
            paths += [f"/apis/{name}/{version}" for version in self.resources.versions(name)]
        if self._aggregation is not None:
            for group, version in self._aggregation.backends:
                paths += [f"/apis/{group}", f"/apis/{group}/{version}"]
        paths += self.health.paths()
        return sorted(set(paths))

    def _version(self, request: Request) -> Response:
        if request.method != "GET":
            raise status.method_not_allowed()
        accept = request.headers.get("accept", "")
        if accept:
            negotiate.check_route(accept, (negotiate.JSON,))
        return Response(200, list(JSON), indented(VERSION | {"gitVersion": self.config.reported_version}))

    def _discovery(self, request: Request, parts: list[str], query: dict[str, str]) -> Response:
        resources = self.resources
        if len(parts) == 1:
            if parts == ["api"] and request.method != "GET":
                raise status.method_not_allowed()
            serializer = asked_for(request.headers.get("accept", ""))
            if serializer is not None:
                return self._all(request, self._aggregated[parts[0]], serializer)
            if parts == ["apis"]:
                return self._document(request, query, self._groups())
            return self._document(request, query, documents.api_versions(self._address()), ROUTED)
        group, version = (
            ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2] if len(parts) > 2 else "")
        )
        if (
            parts[0] == "apis"
            and len(parts) == 2
            and self._aggregation
            and group in self._aggregation.groups()
        ):
            document = {"kind": "APIGroup", "apiVersion": "v1", **self._aggregation.api_group(group)}
            return self._document(request, query, document)
        if group and (not resources.versions(group) or (version and not self._known(group, version))):
            return plain_not_found()
        if parts[0] == "apis" and len(parts) == 2:
            return self._document(request, query, documents.api_group(group, resources))
        served = resources.of(group, version)
        if served is None:
            raise status.no_such_path()
        if request.method != "GET":
            raise status.method_not_allowed()
        endpoint = negotiate.ERRORS if group and documents.is_custom(group, resources) else ROUTED
        document = documents.api_resource_list(group, version, served)
        if not self._hashes:
            for each in document["resources"]:
                each.pop("storageVersionHash", None)
        return self._document(request, query, document, endpoint)

    def _groups(self) -> dict[str, Any]:
        document = documents.api_group_list(self.resources)
        if self._aggregation is not None and self._aggregation.backends:
            listed = {group["name"]: group for group in document["groups"]}
            document["groups"] = self._aggregation.merge(listed, self._aggregation.api_group)
        return document

    def _known(self, group: str, version: str) -> bool:
        """Whether a version of a custom group exists. True for every version of a built-in group, because the caller
        checks those."""
        return self.resources.of(group, version) is not None or not documents.is_custom(group, self.resources)

    def _all(self, request: Request, aggregated: Aggregated, serializer: str) -> Response:
        body = aggregated.body(serializer)
        tag = aggregated.etag.encode()
        headers = [(b"ETag", tag), (b"Vary", b"Accept"), (b"Cache-Control", b"public")]
        if request.headers.get("if-none-match") == aggregated.etag:
            return Response(304, headers)
        return Response(200, [*headers, (b"Content-Type", (serializer + SUFFIX).encode())], body)

    def _address(self) -> str:
        return f"{self.config.advertise_address or '127.0.0.1'}:{self.config.secure_port}"

    def _document(
        self,
        request: Request,
        query: dict[str, str],
        document: dict[str, Any],
        endpoint: negotiate.Endpoint = negotiate.ERRORS,
    ) -> Response:
        headers = request.headers
        pretty = negotiate.wants_pretty(query, headers.get("user-agent", ""))
        media = negotiate.negotiate(headers.get("accept", ""), endpoint, pretty=pretty)
        return Response(200, [(b"Content-Type", media.serializer.encode())], _write(media, document))


def _write(media: negotiate.MediaType, document: dict[str, Any]) -> bytes:
    if media.serializer == negotiate.YAML:
        return yaml.dumps(document)
    if media.serializer == negotiate.PROTOBUF:
        return enveloped(document)
    if media.pretty:
        return indented(document)
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)
