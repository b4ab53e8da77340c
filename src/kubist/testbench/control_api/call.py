"""One request to the control API."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

import orjson

from kubist.api.resources.context import User
from kubist.base.http.messages import Request
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
"""Media types of Kubernetes that this API does not read. Others are taken for JSON, such as that of `curl -d`."""


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
    """First field of the object that comes again; empty if there is none."""
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
