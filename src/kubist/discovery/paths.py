"""Everything that is served and is not a resource: discovery, version, health, and the index of paths."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Callable
from typing import Any

import orjson

from kubist.codec import negotiate
from kubist.config import Config
from kubist.context import User
from kubist.discovery import documents
from kubist.discovery.health import Health
from kubist.http.messages import Answer, Request, Response
from kubist.meta import status
from kubist.request import RequestInfo, split
from kubist.resources import Resources

VERSION = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.4",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "",
    "goVersion": f"python{sys.version_info.major}.{sys.version_info.minor}",
    "compiler": platform.python_implementation().lower(),
    "platform": f"{sys.platform}/{platform.machine()}".replace("x86_64", "amd64").replace("aarch64", "arm64"),
}


def plain_not_found() -> Response:
    headers = [(b"Content-Type", b"text/plain; charset=utf-8"), (b"X-Content-Type-Options", b"nosniff")]
    return Response(404, headers, b"404 page not found\n")


class Paths:
    """The paths of one server."""

    def __init__(self, config: Config, resources: Resources, health: Health) -> None:
        self.config = config
        self.resources = resources
        self.health = health
        self.others: dict[str, Callable[[Request], Answer]] = {}
        """Paths that other rooms answer."""

    async def answer(self, request: Request, info: RequestInfo, user: User, query: dict[str, str]) -> Answer:
        path = info.path
        if path in self.others:
            return self.others[path](request)
        parts = split(path) or [""]
        if parts[0] in ("healthz", "livez", "readyz"):
            excluded = [pair[8:] for pair in request.query.split("&") if pair.startswith("exclude=")]
            return self.health.answer(path, query, excluded) or plain_not_found()
        if parts == ["version"]:
            return json_response(VERSION) if request.method == "GET" else self._wrong_method()
        if parts[0] in ("api", "apis"):
            return self._discovery(request, parts)
        return plain_not_found()

    def _wrong_method(self) -> Response:
        raise status.method_not_allowed()

    def _discovery(self, request: Request, parts: list[str]) -> Response:
        resources = self.resources
        if parts == ["api"]:
            return self._document(request, documents.api_versions(self._address()))
        if parts == ["apis"]:
            return self._document(request, documents.api_group_list(resources))
        group, version = (
            ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2] if len(parts) > 2 else "")
        )
        if parts[0] == "apis" and len(parts) == 2:
            if not resources.versions(group):
                return plain_not_found()
            return self._document(request, documents.api_group(group, resources))
        served = resources.of(group, version)
        if served is None:
            if group and not resources.versions(group):
                return plain_not_found()
            raise status.no_such_path()
        if request.method != "GET":
            raise status.method_not_allowed()
        return self._document(request, documents.api_resource_list(group, version, served))

    def _address(self) -> str:
        return f"{self.config.advertise_address or '127.0.0.1'}:{self.config.secure_port}"

    def _document(self, request: Request, document: dict[str, Any]) -> Response:
        media = negotiate.negotiate(request.headers.get("accept", ""), negotiate.ERRORS)
        if media.serializer == negotiate.YAML:
            from kubist.codec import yaml

            return Response(200, [(b"Content-Type", b"application/yaml")], yaml.dumps(document))
        return json_response(document)


def json_response(document: dict[str, Any]) -> Response:
    body = orjson.dumps(document)
    return Response(200, [(b"Content-Type", b"application/json")], body)


def etag(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest().upper()
