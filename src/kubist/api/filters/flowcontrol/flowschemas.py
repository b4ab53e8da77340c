"""FlowSchemas and PriorityLevelConfigurations: classification of requests. Both are parsed once per change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kubist.api.filters.authorization.query import AuthorizationQuery
from kubist.api.resources.context import User
from kubist.base.caching import BoundedCache
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Change, Collection

if TYPE_CHECKING:
    from kubist.api.filters.flowcontrol.seats import Traffic
    from kubist.api.object_store.registry import Registry

GROUP = "flowcontrol.apiserver.k8s.io"
CATCH_ALL = "catch-all"


class FlowSchema:
    """A FlowSchema: its rules, priority level and flow distinguisher."""

    __slots__ = ("_rules", "distinguisher", "level", "name", "precedence", "traffic", "uid")

    def __init__(self, obj: Object) -> None:
        spec = obj["spec"]
        self.name: str = obj["metadata"]["name"]
        self.uid: str = obj["metadata"].get("uid", "")
        self.level: str = (spec.get("priorityLevelConfiguration") or {}).get("name", "")
        self.precedence: int = spec.get("matchingPrecedence", 1000)
        self.distinguisher: str = (spec.get("distinguisherMethod") or {}).get("type", "")
        self._rules = spec.get("rules") or []
        self.traffic: Traffic | None = None
        """Counters of its requests, set by the first request."""

    def matches(self, request: AuthorizationQuery) -> bool:
        return any(
            any(_is_subject(subject, request.user) for subject in rule.get("subjects") or ())
            and (
                any(_is_resource(one, request) for one in rule.get("resourceRules") or ())
                if request.is_resource
                else any(_is_path(one, request) for one in rule.get("nonResourceRules") or ())
            )
            for rule in self._rules
        )

    def flow(self, request: AuthorizationQuery) -> str:
        """Flow distinguisher of a request. Requests with the same value are one flow for fair queuing."""
        if self.distinguisher == "ByUser":
            return request.user.name
        return request.namespace if self.distinguisher == "ByNamespace" else ""


def _is_subject(subject: Object, user: User) -> bool:
    match subject.get("kind"):
        case "User":
            return (subject.get("user") or {}).get("name") in ("*", user.name)
        case "Group":
            name = (subject.get("group") or {}).get("name")
            return name == "*" or name in user.groups
        case "ServiceAccount":
            account = subject.get("serviceAccount") or {}
            prefix = f"system:serviceaccount:{account.get('namespace', '')}:"
            name = account.get("name")
            return user.name.startswith(prefix) if name == "*" else user.name == f"{prefix}{name}"
    return False


def _is_resource(rule: Object, request: AuthorizationQuery) -> bool:
    resource = f"{request.resource}/{request.subresource}" if request.subresource else request.resource
    return (
        _has(rule.get("verbs"), request.verb)
        and _has(rule.get("resources"), resource)
        and _has(rule.get("apiGroups"), request.group)
        and (
            _has(rule.get("namespaces"), request.namespace)
            if request.namespace
            else bool(rule.get("clusterScope"))
        )
    )


def _is_path(rule: Object, request: AuthorizationQuery) -> bool:
    path = request.path
    return _has(rule.get("verbs"), request.verb) and any(
        url in ("*", path) or path.startswith(url.removesuffix("*").rstrip("/") + "/")
        for url in rule.get("nonResourceURLs") or ()
    )


def _has(values: list[str] | None, value: str) -> bool:
    return bool(values) and (values == ["*"] or value in (values or ()))


class FlowSchemas:
    """FlowSchemas of the server in order of precedence. Calls `changed` with all priority levels on every change."""

    def __init__(self, registry: Registry, changed: Callable[[list[Object]], None]) -> None:
        self._registry = registry
        self._changed = changed
        self._seen: list[tuple[Collection, Any]] = []
        self._schemas: list[FlowSchema] = []
        """All FlowSchemas. Every change rebuilds them."""
        self._known: BoundedCache[tuple[Any, ...], FlowSchema] = BoundedCache(entries=4096, key_length=2048)

    def classify(self, request: AuthorizationQuery) -> FlowSchema | None:
        """The first matching FlowSchema; None only while the server has no FlowSchemas."""
        for collection, entries in self._seen:
            if collection.entries is not entries:
                self._load()
                break
        if not self._seen:
            self._load()
        user = request.user
        key = (
            user.name, user.groups, request.verb, request.is_resource, request.group, request.resource,
            request.subresource, request.namespace, "" if request.is_resource else request.path,
        )  # fmt: skip
        match = self._known.get(key)
        if match is None:
            for schema in self._schemas:
                if schema.matches(request) or schema.name == CATCH_ALL:
                    self._known[key] = schema
                    return schema
        return match

    def all(self) -> list[FlowSchema]:
        """All FlowSchemas in order of precedence."""
        return self._schemas

    def _load(self) -> None:
        self._seen = []
        for resource in ("flowschemas", "prioritylevelconfigurations"):
            stored = self._registry.resources.stored(GROUP, resource)
            assert stored is not None
            collection = self._registry.collection(stored)
            collection.subscribe(self, self._on_change)
            self._seen.append((collection, collection.entries))
        self._on_change([])

    def _on_change(self, _changes: list[Change]) -> None:
        """Rebuilds everything, because there are about a dozen of each and they rarely change."""
        schemas, levels = (
            [entry.object() for entry in collection.entries.values()] for collection, _ in self._seen
        )
        names = {level["metadata"]["name"] for level in levels}
        flow_schemas = [FlowSchema(schema) for schema in schemas]
        self._schemas = sorted(
            (schema for schema in flow_schemas if schema.level in names), key=lambda s: (s.precedence, s.name)
        )
        self._known.clear()
        self._changed(levels)
