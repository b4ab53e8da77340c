"""Criteria of a fault rule: the requests that it matches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any

from kubist.api.request import RequestInfo
from kubist.base.hints import did_you_mean
from kubist.model.cel import CompileError, Program
from kubist.model.meta.selectors import LabelSelector, parse_label_selector
from kubist.testbench.control_api.body import Body
from kubist.testbench.control_api.field_types import SHARE, TEXTS, Fields, FieldType, integer, parsed
from kubist.testbench.faults.request import FaultRequest, compile_expression

RESOURCE_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
OTHER_VERBS = ("head", "options", "post", "put")
"""Further verbs of non-resource paths."""
MOST_VALUES = 100
LONGEST_TEXT = 10_000
MOST = 1_000_000_000
"""Maximum number of requests or bytes."""
CRITERIA = (
    *("verb", "resource", "namespace", "name", "labelSelector", "user", "userAgent", "expression"),
    *("nth", "every", "probability", "times"),
)


@dataclass(slots=True, frozen=True)
class ResourcePattern:
    """Resource such as `deployments`, `deployments.apps` or `pods/status`. Each part may have `*`.

    Without a group it matches every group. Without a subresource it matches only the resource itself, but `*` alone
    matches every resource and subresource.
    """

    text: str
    resource: str
    group: str | None
    subresource: str

    @classmethod
    def parse(cls, text: str) -> ResourcePattern:
        """ValueError if it cannot match anything."""
        main, slash, subresource = text.partition("/")
        resource, dot, group = main.partition(".")
        if not resource or (slash and not subresource) or (dot and not group) or "/" in subresource:
            raise ValueError("must be like deployments, deployments.apps, pods/status or *")
        if resource != resource.lower():
            raise ValueError("must be the lower-case plural, such as deployments")
        return cls(text, resource, group if dot else None, subresource)

    def matches(self, info: RequestInfo) -> bool:
        if not info.is_resource or not fnmatchcase(info.resource, self.resource):
            return False
        if self.group is not None and not fnmatchcase(info.group, self.group):
            return False
        if not self.subresource:
            return not info.subresource or self.text == "*"
        return bool(info.subresource) and fnmatchcase(info.subresource, self.subresource)


class OneOf(FieldType):
    """One string, or several of which one must match."""

    def __init__(self, parse: Callable[[str], Any] = str) -> None:
        texts = {"type": "array", "items": {"type": "string"}, "minItems": 1}
        super().__init__({"oneOf": [{"type": "string"}, texts]})
        self._parse = parse

    def read(self, fields: Fields, name: str, default: Any) -> Any:
        value = fields.peek(name)
        texts = TEXTS.read(fields, name, ())
        if value == [] or "" in texts:
            fields.reject(name, value, "must not be empty")
        elif len(texts) > MOST_VALUES or any(len(text) > LONGEST_TEXT for text in texts):
            fields.reject(name, "", f"must have at most {MOST_VALUES} values of {LONGEST_TEXT} characters")
        patterns = []
        for text in texts:
            try:
                patterns.append(self._parse(text))
            except ValueError as error:
                fields.reject(name, text, str(error))
        return tuple(patterns)


def _verb(text: str) -> str:
    verbs = (*RESOURCE_VERBS, *OTHER_VERBS)
    if text not in verbs:
        raise ValueError(f"must be one of {', '.join(RESOURCE_VERBS)}{did_you_mean(text, verbs)}")
    return text


def _expression(text: str) -> Program:
    try:
        return compile_expression(text)
    except CompileError as error:
        raise ValueError(str(error)) from None


class _Expression(Body):
    expression: Annotated[
        Program | None, parsed(_expression, LONGEST_TEXT), "CEL expression over `request`."
    ] = None


class RequestFilters(Body):
    verb: Annotated[tuple[str, ...], OneOf(_verb), f"Verb of the request: {', '.join(RESOURCE_VERBS)}."] = ()
    resource: Annotated[
        tuple[ResourcePattern, ...],
        OneOf(ResourcePattern.parse),
        "Such as deployments, deployments.apps, pods/status or *.",
    ] = ()
    namespace: Annotated[tuple[str, ...], OneOf(), "Namespace; may contain *."] = ()
    name: Annotated[tuple[str, ...], OneOf(), "Name of the object; may contain *."] = ()
    user: Annotated[tuple[str, ...], OneOf(), "Name of the user; may contain *."] = ()
    user_agent: Annotated[tuple[str, ...], OneOf(), "Prefix of the User-Agent header."] = ()

    def is_plausible(self, request: FaultRequest) -> bool:
        """Whether the request line and the user match. Of several values of one field, one must match."""
        info = request.info
        if self.verb and info.verb not in self.verb:
            return False
        if self.resource and not any(pattern.matches(info) for pattern in self.resource):
            return False
        if self.user and not _any(request.user.name, self.user):
            return False
        if self.user_agent and not request.user_agent.startswith(self.user_agent):
            return False
        if self.namespace and not (request.namespace and _any(request.namespace, self.namespace)):
            return False
        return not self.name or bool(request.name and _any(request.name, self.name))


class _Choice(Body):
    label_selector: Annotated[
        LabelSelector | None,
        parsed(parse_label_selector, LONGEST_TEXT),
        "Labels of the object: in the body of a create, otherwise as stored.",
    ] = None
    nth: Annotated[int, integer(1, MOST), "Acts only on this matching request, counted from 1."] = 0
    every: Annotated[int, integer(1, MOST), "Acts on every so many matching requests."] = 0
    probability: Annotated[float | None, SHARE, "Acts on this share of the requests."] = None
    seed: Annotated[int, integer(), "Seed of the probability. The same seed gives the same choices."] = 0
    times: Annotated[int, integer(1, MOST), "Acts on at most so many requests."] = 0


class Criteria(_Expression, RequestFilters, _Choice):
    def is_plausible(self, request: FaultRequest) -> bool:
        """Whether the request line, the user and the object match; all criteria but the expression."""
        if not super().is_plausible(request):
            return False
        return self.label_selector is None or _has_labels(request, self.label_selector)

    async def holds(self, request: FaultRequest) -> bool:
        """Whether the expression is true. An expression that fails is false."""
        return self.expression is None or await request.evaluate(self.expression)


def _has_labels(request: FaultRequest, selector: LabelSelector) -> bool:
    obj = request.object if request.info.verb == "create" else request.old_object
    if obj is None:
        return False
    metadata = obj.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    if not isinstance(labels, dict):
        labels = {}
    return selector.matches({key: value for key, value in labels.items() if isinstance(value, str)})


def _any(value: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(value, pattern) for pattern in patterns)
