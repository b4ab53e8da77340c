"""Criteria of a fault rule: the requests that it matches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TypeVar

from kubist.api.request import RequestInfo
from kubist.base.hints import did_you_mean
from kubist.model.cel import CompileError, Program
from kubist.model.meta.selectors import LabelSelector, ParseError, parse_label_selector
from kubist.testbench.control_api.call import Fields
from kubist.testbench.faults.expression import compile_expression
from kubist.testbench.faults.request import FaultRequest

T = TypeVar("T")
RESOURCE_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
OTHER_VERBS = ("head", "options", "post", "put")
"""Further verbs of paths that are no resources."""
MOST_VALUES = 100
LONGEST_TEXT = 10_000
MOST = 1_000_000_000
"""Largest number of requests or bytes."""
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


@dataclass(slots=True, frozen=True)
class Criteria:
    """A request matches if every given criterion does. Of several values of one criterion, one must match."""

    verbs: tuple[str, ...] = ()
    resources: tuple[ResourcePattern, ...] = ()
    namespaces: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    user_agents: tuple[str, ...] = ()
    labels: LabelSelector | None = None
    expression: Program | None = None
    nth: int = 0
    every: int = 0
    probability: float | None = None
    seed: int = 0
    times: int = 0
    """Number of requests on which the rule acts. 0: no limit."""
    spares_tests: bool = False
    """Whether the rule does not act on the helpers of a test."""
    given: tuple[str, ...] = field(default=())
    """Names of the criteria that the rule has."""

    def is_plausible(self, request: FaultRequest) -> bool:
        """Whether the request line, the user and the object match; all criteria but the expression."""
        info = request.info
        if self.verbs and info.verb not in self.verbs:
            return False
        if self.resources and not any(pattern.matches(info) for pattern in self.resources):
            return False
        if self.users and not _any(request.user.name, self.users):
            return False
        if self.user_agents and not request.user_agent.startswith(self.user_agents):
            return False
        if self.namespaces and not (request.namespace and _any(request.namespace, self.namespaces)):
            return False
        if self.names and not (request.name and _any(request.name, self.names)):
            return False
        return self.labels is None or self._labelled(self.labels, request)

    @staticmethod
    def _labelled(selector: LabelSelector, request: FaultRequest) -> bool:
        obj = request.object if request.info.verb == "create" else request.old_object
        if obj is None:
            return False
        metadata = obj.get("metadata")
        labels = metadata.get("labels") if isinstance(metadata, dict) else None
        if not isinstance(labels, dict):
            labels = {}
        return selector.matches({key: value for key, value in labels.items() if isinstance(value, str)})

    async def holds(self, request: FaultRequest) -> bool:
        """Whether the expression is true. An expression that fails is false."""
        return self.expression is None or await request.evaluate(self.expression)


def _any(value: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(value, pattern) for pattern in patterns)


def parse_criteria(
    asked: Fields, default_verbs: tuple[str, ...], default_resources: tuple[str, ...]
) -> Criteria:
    """Criteria of a rule. Errors are added to those of `asked`."""
    given = tuple(name for name in CRITERIA if name in asked)
    chances = [name for name in ("nth", "every", "probability") if name in asked]
    for name in chances[1:]:
        asked.forbid(name, f"must not be set together with {chances[0]}")
    expression = _parsed(asked, "expression", compile_expression, CompileError)
    names_agents = expression is not None and expression.selects("request", "userAgent")
    return replace(
        parse_plain_criteria(asked, default_verbs, default_resources),
        labels=_parsed(asked, "labelSelector", parse_label_selector, ParseError),
        expression=expression,
        spares_tests="userAgent" not in given and not names_agents,
        nth=_count(asked, "nth"),
        every=_count(asked, "every"),
        probability=_probability(asked),
        seed=asked.integer("seed"),
        times=_count(asked, "times"),
        given=given,
    )


def parse_plain_criteria(
    asked: Fields, default_verbs: tuple[str, ...] = (), default_resources: tuple[str, ...] = ()
) -> Criteria:
    """Criteria that compare texts of the request line and the user. Errors are added to those of `asked`."""
    return Criteria(
        verbs=_verbs(asked) or default_verbs,
        resources=_resources(asked, default_resources),
        namespaces=_patterns(asked, "namespace"),
        names=_patterns(asked, "name"),
        users=_patterns(asked, "user"),
        user_agents=_patterns(asked, "userAgent"),
    )


def _verbs(asked: Fields) -> tuple[str, ...]:
    verbs = _patterns(asked, "verb")
    for verb in verbs:
        if verb not in (*RESOURCE_VERBS, *OTHER_VERBS):
            hint = did_you_mean(verb, (*RESOURCE_VERBS, *OTHER_VERBS))
            asked.reject("verb", verb, f"must be one of {', '.join(RESOURCE_VERBS)}{hint}")
    return verbs


def _resources(asked: Fields, default: tuple[str, ...]) -> tuple[ResourcePattern, ...]:
    found = []
    for text in _patterns(asked, "resource") or default:
        try:
            found.append(ResourcePattern.parse(text))
        except ValueError as error:
            asked.reject("resource", text, str(error))
    return tuple(found)


def _patterns(asked: Fields, name: str) -> tuple[str, ...]:
    value = asked.peek(name)
    texts = asked.texts(name)
    if value == [] or "" in texts:
        asked.reject(name, value, "must not be empty")
    elif len(texts) > MOST_VALUES or any(len(text) > LONGEST_TEXT for text in texts):
        asked.reject(name, "", f"must have at most {MOST_VALUES} values of {LONGEST_TEXT} characters")
    return texts


def _parsed(asked: Fields, name: str, parse: Callable[[str], T], wrong: type[Exception]) -> T | None:
    text = asked.text(name)
    if not text:
        return None
    if len(text) > LONGEST_TEXT:
        asked.reject(name, text[:50], f"must have at most {LONGEST_TEXT} characters")
        return None
    try:
        return parse(text)
    except wrong as error:
        asked.reject(name, text, str(error))
        return None


def _count(asked: Fields, name: str) -> int:
    value = asked.integer(name, least=1)
    if value > MOST:
        asked.reject(name, value, f"must be at most {MOST}")
    return value


def _probability(asked: Fields) -> float | None:
    value = asked.number("probability")
    if value is not None and not 0 < value <= 1:
        asked.reject("probability", value, "must be greater than 0 and at most 1")
    return value
