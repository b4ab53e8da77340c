"""Request as fault rules see it. Its objects are read only if a rule needs them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import orjson

from kubist.api.application import API
from kubist.api.resources.context import Context
from kubist.api.resources.resource import Resource
from kubist.api.verbs.patch import APPLY
from kubist.base.offload import Lengthy, elsewhere
from kubist.model import cel
from kubist.model.cel import (
    BOOL,
    DYN,
    PER_CALL_LIMIT,
    STRING,
    CompileError,
    CostExceeded,
    EvaluationError,
    Program,
    list_of,
    map_of,
    object_type,
)
from kubist.model.codec import protobuf, yaml
from kubist.model.codec.negotiate import PROTOBUF
from kubist.model.meta.object import Object
from kubist.testbench.control_api.control_api import TEST_AGENT


class FaultRequest:
    """One authorized request of a client, or one open watch."""

    def __init__(self, api: API, ctx: Context) -> None:
        self._api = api
        self.ctx = ctx
        self.info = ctx.info
        self.user = ctx.user
        self.user_agent = ctx.request.headers.get("user-agent", "")
        self.namespace = ctx.info.namespace

    @property
    def is_of_test(self) -> bool:
        """Whether a helper of a test sent the request."""
        return self.user_agent.startswith(TEST_AGENT)

    @cached_property
    def name(self) -> str:
        """Name of the object; for a create, of the object in the body."""
        if self.info.name or self.info.verb != "create" or self.object is None:
            return self.info.name
        metadata = self.object.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return name if isinstance(name, str) else ""

    @cached_property
    def resource(self) -> Resource | None:
        """Resource of the URL; None if it is not served."""
        info = self.info
        served = self._api.resources.of(info.group, info.version) if info.is_resource else None
        return served.get(info.resource) if served is not None else None

    @cached_property
    def object(self) -> Object | None:
        """Object in the body of a create, an update or an apply. None if there is none or it is malformed."""
        request = self.ctx.request
        kind = request.headers.get("content-type", "").partition(";")[0].strip()
        if not request.body or (self.info.verb not in ("create", "update") and kind != APPLY):
            return None
        try:
            value = self._decoded(kind, request.body)
        except Exception:  # the verb reports it
            return None
        return value if isinstance(value, dict) else None

    def _decoded(self, kind: str, body: bytes) -> Any:
        if kind == PROTOBUF:
            if self.resource is None:
                return None
            return protobuf.decode(self.resource.schema, protobuf.unwrap(body).raw)
        if "yaml" in kind:
            return yaml.parse(body).value
        return orjson.loads(body)

    @cached_property
    def old_object(self) -> Object | None:
        """Stored object that the URL names. None if there is none."""
        info, resource = self.info, self.resource
        if resource is None or not info.name:
            return None
        collection = self._api.registry.collection(resource)
        entry = collection.get(resource.key(info.namespace if resource.namespaced else "", info.name))
        return entry.object() if entry is not None else None

    async def evaluate(self, program: Program) -> bool:
        """Whether an expression is true. An expression that fails is false."""
        variables = {"request": self._variables(program)}
        try:
            try:
                value, _ = program.evaluate(variables, PER_CALL_LIMIT)
            except Lengthy:
                value, _ = await elsewhere(program.evaluate, variables, PER_CALL_LIMIT)
        except (EvaluationError, CostExceeded):
            return False
        return value is True

    def _variables(self, program: Program) -> Object:
        """Fields of `request` that the expression selects. The objects are read only for these."""
        own: dict[str, Callable[[], Any]] = {
            "name": lambda: self.name,
            "user": lambda: self.user.name,
            "userAgent": lambda: self.user_agent,
            "groups": lambda: list(self.user.groups),
            "query": lambda: dict(self.ctx.query),
            "object": lambda: self.object,
            "oldObject": lambda: self.old_object,
        }
        return {
            name: own[name]() if name in own else getattr(self.info, name)
            for name in _FIELDS
            if program.selects("request", name)
        }


_TEXTS = (
    *("verb", "path", "group", "version", "resource", "subresource", "namespace", "name"),
    *("user", "userAgent"),
)
_FIELDS = dict.fromkeys(_TEXTS, STRING) | {
    "groups": list_of(STRING),
    "query": map_of(STRING, STRING),
    "object": DYN,
    "oldObject": DYN,
}
"""Fields of `request` and their types."""
_ENVIRONMENT = cel.Environment({"request": object_type("kubist.Request", _FIELDS)})


def compile_expression(expression: str) -> Program:
    """Compiled expression. Raises CompileError."""
    program = cel.compile(expression, _ENVIRONMENT)
    if program.type not in (BOOL, DYN):
        raise CompileError(f"must evaluate to bool but got {program.type}")
    return program
