"""Control API: everything of the test bench over HTTP, below /kubist/v1/.

JSON in camelCase; errors are a Status. A client needs a rule for these non-resource URLs, or the group system:masters.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, TypeVar
from urllib.parse import parse_qsl, unquote

import orjson

from kubist.api.resources.context import User
from kubist.base.http.messages import Answer, Request, Response
from kubist.base.jsontext.json import may_repeat, parse_repeats
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.testbench.control_api.body import read
from kubist.testbench.control_api.field_types import Fields

T = TypeVar("T")
TEST_AGENT = "kubist-testing"
"""User agent of the helpers of a test. Fault rules spare it unless they name a user agent."""
FAULT_HEADER = "Kubist-Fault"
"""Header of a response that a fault rule made, with the id of the rule."""
OTHER_TYPES = frozenset(
    (
        "application/yaml",
        "application/cbor",
        "application/vnd.kubernetes.protobuf",
        "application/apply-patch+yaml",
    )
)
"""Media types of Kubernetes that this API does not read. All others are read as JSON, such as that of `curl -d`."""


@dataclass(slots=True)
class Call:
    """One request to the control API."""

    request: Request
    user: User
    query: dict[str, str]
    params: dict[str, str] = field(default_factory=dict)
    """Variable parts of the path."""

    def json(self) -> Object:
        """Object of the body; empty without a body. Raises 400 or 415 if the body is no JSON object."""
        if not self.request.body:
            return {}
        media_type = self.request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type in OTHER_TYPES:
            raise status.APIError(
                415, "UnsupportedMediaType", f"the body is {media_type}: send application/json"
            )
        body = self.request.body
        try:
            obj = orjson.loads(body)
        except ValueError as error:
            raise status.bad_request(f"the body is not JSON: {error}") from None
        if not isinstance(obj, dict):
            raise status.bad_request("the body must be a JSON object")
        if may_repeat(body, obj) and (twice := _repeated(body)):
            raise status.bad_request(f"the body has the field {quoted(twice)} twice")
        return obj

    def fields(self, kind: str) -> Fields:
        """Fields of the body. Errors name the kind."""
        return Fields(kind, self.json())

    def read(self, kind: str, body: type[T]) -> T:
        """Body of a class. Raises 422 with all errors."""
        fields = self.fields(kind)
        made = read(fields, body)
        fields.done()
        return made


def _repeated(body: bytes) -> str:
    """First field that the object repeats; empty if there is none."""
    value, repeats = parse_repeats(body)
    seen: set[str] = set()
    for name, _ in repeats.pairs(value):
        if name in seen:
            return name
        seen.add(name)
    return ""


def conflict(message: str) -> NoReturn:
    """Raises 409 for an operation that this server cannot do in its present state."""
    raise status.APIError(409, "Conflict", message)


Handler = Callable[[Call], Awaitable[Any]]
"""Returns an object for the response, a complete response, or None (204)."""
Schemas = Mapping[str, type]
"""Classes of bodies and responses by the names of their schemas."""
_JSON = [(b"Content-Type", b"application/json")]


class Operation(NamedTuple):
    """One method of a path such as `faults/{id}`. A last part `{name...}` takes the rest of the path."""

    method: str
    path: str
    handler: Handler
    """Its docstring is the summary of the operation."""
    body: str = ""
    """Schema of the request body. Empty: an object without fields."""
    result: str = ""
    """Schema of the response. `NAMEList` is a list of the schema `NAME`. Empty: any object."""
    code: int = 200
    """Status of a success. 204: there is no response body."""
    is_lines: bool = False
    """Whether the response is a stream of JSON lines."""


class _Route(NamedTuple):
    parts: tuple[str, ...]
    operations: dict[str, Operation]


class ControlAPI:
    """Routes of the control API."""

    def __init__(self) -> None:
        self._routes: dict[str, _Route] = {}
        self._schemas: list[Schemas] = []
        self.add(Operation("GET", "openapi.json", self._openapi))

    def add(self, *operations: Operation) -> None:
        """Adds operations. Their schemas are those of `openapi.SCHEMAS` and of `describe`."""
        for operation in operations:
            path = operation.path
            route = self._routes.setdefault(path, _Route(tuple(path.split("/")), {}))
            route.operations[operation.method] = operation

    def operations(self) -> Iterator[Operation]:
        for route in self._routes.values():
            yield from route.operations.values()

    def routes(self) -> Iterator[tuple[str, str, Handler]]:
        """Method, path and handler of every operation."""
        return (operation[:3] for operation in self.operations())

    def describe(self, schemas: Schemas) -> None:
        """Adds schemas to the OpenAPI document."""
        self._schemas.append(schemas)

    async def _openapi(self, _: Call) -> Object:
        """This document."""
        # Saves start-up time: few clients read it.
        from kubist.testbench.control_api import openapi

        return openapi.document(self.operations(), self._schemas)

    async def answer(self, request: Request, path: str, user: User) -> Answer:
        route, params = self._find(path)
        operation = route.operations.get(request.method)
        if operation is None:
            raise status.method_not_allowed()
        if request.body_too_large:
            raise status.body_too_large()
        result = await operation.handler(Call(request, user, dict(parse_qsl(request.query, True)), params))
        if isinstance(result, Answer):
            return result
        if result is None:
            return Response(operation.code, [])
        return Response(operation.code, list(_JSON), orjson.dumps(result) + b"\n")

    def _find(self, path: str) -> tuple[_Route, dict[str, str]]:
        parts = path.strip("/").split("/")
        for route in self._routes.values():
            params = _match(route.parts, parts)
            if params is not None:
                return route, params
        raise status.no_such_path()


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
