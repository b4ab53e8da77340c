"""Control API: everything of the test bench over HTTP, below /kubist/v1/.

JSON in camelCase; errors are a Status. A client needs a rule for these non-resource URLs, or the group system:masters.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

import orjson

from kubist.api.resources.context import User
from kubist.base.http.messages import Answer, Request, Response
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.testbench.control_api.call import Call

Handler = Callable[[Call], Awaitable[Any]]
"""Returns an object for the response (200), a complete response, or None (204)."""
Named = dict[tuple[str, str], str]
"""Names of schemas by method and path."""
_JSON = [(b"Content-Type", b"application/json")]


class _Route(NamedTuple):
    parts: tuple[str, ...]
    handlers: dict[str, Handler]


class ControlAPI:
    """Routes of the control API."""

    def __init__(self) -> None:
        self._routes: dict[str, _Route] = {}
        self._schemas: list[tuple[dict[str, Object], Named, Named]] = []
        self.add("GET", "openapi.json", self._openapi)

    def add(self, method: str, path: str, handler: Handler) -> None:
        """Adds a handler for a path such as `faults/{id}`. A last part `{name...}` takes the rest of the path."""
        route = self._routes.setdefault(path, _Route(tuple(path.split("/")), {}))
        route.handlers[method] = handler

    def routes(self) -> Iterator[tuple[str, str, Handler]]:
        """Method, path and handler of every operation."""
        for path, route in self._routes.items():
            for method, handler in route.handlers.items():
                yield method, path, handler

    def describe(self, schemas: dict[str, Object], bodies: Named, results: Named) -> None:
        """Adds schemas to the OpenAPI document, and names those of request bodies and of responses."""
        self._schemas.append((schemas, bodies, results))

    async def _openapi(self, _: Call) -> Object:
        """This document."""
        # Saves start-up time: few clients read it.
        from kubist.testbench.control_api import openapi

        return openapi.document(self.routes(), self._schemas)

    async def answer(self, request: Request, path: str, user: User) -> Answer:
        found = self._find(path)
        if found is None:
            raise status.no_such_path()
        handlers, params = found
        handler = handlers.get(request.method)
        if handler is None:
            raise status.method_not_allowed()
        if request.body_too_large:
            raise status.too_large("Request entity too large: limit is 3145728")
        result = await handler(Call(request, user, dict(parse_qsl(request.query, True)), params))
        if isinstance(result, Answer):
            return result
        if result is None:
            return Response(204, [])
        return json_response(result)

    def _find(self, path: str) -> tuple[dict[str, Handler], dict[str, str]] | None:
        parts = path.strip("/").split("/")
        for route in self._routes.values():
            params = _match(route.parts, parts)
            if params is not None:
                return route.handlers, params
        return None


def json_response(body: Object, code: int = 200) -> Response:
    return Response(code, list(_JSON), orjson.dumps(body) + b"\n")


def _match(pattern: tuple[str, ...], parts: list[str]) -> dict[str, str] | None:
    params: dict[str, str] = {}
    for index, name in enumerate(pattern):
        if name.endswith("...}"):
            rest = [unquote(part) for part in parts[index:]]
            return params | {name[1:-4]: "/".join(rest)} if rest else None
        if index >= len(parts):
            return None
        if name.startswith("{"):
            params[name[1:-1]] = unquote(parts[index])
        elif name != parts[index]:
            return None
    return params if len(parts) == len(pattern) else None
