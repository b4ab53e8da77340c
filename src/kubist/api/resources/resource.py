"""Served resources. The built-in resources are static and shared by all servers; a server adds custom resources.

A `Resource` is one (group, version, plural). The versions of a kind share one `prefix` in the store.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson

from kubist.api.resources.strategy import Strategy
from kubist.base.caching import BoundedCache
from kubist.model.meta.api_versions import priority
from kubist.model.schema.catalog import schema_for
from kubist.model.versions import has_row

if TYPE_CHECKING:
    from kubist.api.resources.custom import CustomResource
    from kubist.model.schema.node import Schema


@dataclass(slots=True, frozen=True)
class SubresourceInfo:
    """Subresource, as discovery lists it."""

    name: str
    kind: str
    group: str
    version: str
    verbs: tuple[str, ...]


@dataclass(eq=False)
class Resource:
    """Resource of one group-version, for example apps/v1 deployments."""

    group: str
    version: str
    resource: str
    kind: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: dict[str, SubresourceInfo] = field(default_factory=dict)
    preferred: bool = True
    list_kind: str = ""
    custom: CustomResource | None = None
    """Version of the CRD that defines the resource; None for a built-in one."""
    storage_version: str = ""
    """apiVersion of stored objects, the same for all versions of the kind."""
    prefix: str = ""
    """Key prefix of the collection in the store, with a trailing slash: `/registry/pods/`."""
    storage_version_hash: str = ""
    since: int = 0
    """Store revision at which the resource was first served. Watches cannot start earlier."""
    representations: dict[Any, Any] = field(default_factory=dict)
    """Cache of `verbs.responses` and `tables.table`, kept as long as the resource."""
    negotiated: BoundedCache[tuple[Any, ...], Any] = field(
        default_factory=partial(BoundedCache, entries=64, key_length=512)
    )
    """Cache of `verbs.responses`: Accept header and options → representation."""
    expected: Any = field(init=False, default=None)
    """Cache of `verbs.body`."""
    api_version: str = field(init=False)

    def __post_init__(self) -> None:
        self.api_version = f"{self.group}/{self.version}" if self.group else self.version

    @functools.cached_property
    def strategy(self) -> Strategy:
        """Rules of the kind. Loaded on first use, because a server needs few kinds. A CRD sets its own strategy."""
        return load_strategy(self.group, self.kind)

    @functools.cached_property
    def schema(self) -> Schema:
        """Schema of the kind. Loaded on first use. A CRD sets its own schema."""
        return schema_for(self.group, self.version, self.kind)

    @property
    def stored_group(self) -> str:
        """Group of the stored version, as errors show it. It differs from `group` only for events."""
        return self.storage_version.rpartition("/")[0]

    def key(self, namespace: str, name: str) -> str:
        return f"{self.prefix}{namespace}/{name}" if self.namespaced else self.prefix + name


GROUP_FOLDERS = {
    "": "core",
    "internal.apiserver.k8s.io": "apiserverinternal",
    "rbac.authorization.k8s.io": "rbac",
}
"""Group → folder of its kinds, if that is not the first part of the group's name."""


def group_module(group: str, name: str) -> ModuleType | None:
    """Module with a name in the folder of a group; None if there is none."""
    path = f"kubist.api.kinds.{GROUP_FOLDERS.get(group, group.partition('.')[0])}.{name}"
    try:
        exists = importlib.util.find_spec(path) is not None
    except ModuleNotFoundError:
        exists = False
    return importlib.import_module(path) if exists else None


def load_strategy(group: str, kind: str) -> Strategy:
    module = group_module(group, kind.lower())
    if module is None:
        return Strategy()
    assert isinstance(module.strategy, Strategy)
    return module.strategy


KEY_NAMES = {
    ("", "endpoints"): "services/endpoints",
    ("", "nodes"): "minions",
    ("", "replicationcontrollers"): "controllers",
    ("", "services"): "services/specs",
    ("networking.k8s.io", "ingresses"): "ingress",
    ("apiextensions.k8s.io", "customresourcedefinitions"): "apiextensions.k8s.io/customresourcedefinitions",
    ("apiregistration.k8s.io", "apiservices"): "apiregistration.k8s.io/apiservices",
}
"""(group, plural) → key name in the store, if that is not the plural."""

STORED_ELSEWHERE = {
    ("events.k8s.io", "events"): ("v1", "/registry/events/"),
    ("autoscaling", "horizontalpodautoscalers"): ("autoscaling/v2", "/registry/horizontalpodautoscalers/"),
}
"""Kinds stored in another group or version → stored apiVersion and key prefix."""


_LIMITS = 11
"""Index of `since` and `until` in the row of a resource. In the row of a subresource it is 5."""


@functools.cache
def builtin() -> tuple[Resource, ...]:
    """Built-in resources of the served version in discovery order, shared by all servers. Strategies and schemas are
    loaded on first use."""
    rows = orjson.loads(Path(__file__).with_name("resources.json").read_bytes())
    return tuple(_builtin(row) for row in rows if has_row(row, _LIMITS))


def _builtin(row: list[Any]) -> Resource:
    group, version, plural, kind, singular, namespaced, verbs, short, categories, subs, preferred = row[
        :_LIMITS
    ]
    api_version = f"{group}/{version}" if group else version
    where = f"/registry/{KEY_NAMES.get((group, plural), plural)}/"
    storage_version, prefix = STORED_ELSEWHERE.get((group, plural), (api_version, where))
    return Resource(
        group=group,
        version=version,
        resource=plural,
        kind=kind,
        singular=singular,
        namespaced=namespaced,
        verbs=tuple(verbs),
        short_names=tuple(short),
        categories=tuple(categories),
        subresources={
            s[0]: SubresourceInfo(s[0], s[1], s[2], s[3], tuple(s[4])) for s in subs if has_row(s, 5)
        },
        preferred=preferred,
        list_kind=kind + "List",
        storage_version=storage_version,
        prefix=prefix,
    )


def _is_stored(resource: Resource) -> bool:
    """Whether objects are stored in this version of the resource."""
    return resource.storage_version == resource.api_version


class Resources:
    """Resources of one server: built-in resources, and custom resources that are added and removed.

    `resources` are the built-in resources of the server in discovery order, by default `builtin()`. Clients cannot see
    `hidden` resources. They exist for the server itself, which stores their objects.
    """

    def __init__(
        self, resources: Iterable[Resource] | None = None, hidden: Collection[Resource] = frozenset()
    ) -> None:
        self.generation = 0
        """Counter of changes. Discovery and OpenAPI compare it to decide whether to rebuild their documents."""
        self.built_in = tuple(builtin() if resources is None else resources)
        """Built-in resources that clients see."""
        self._hidden: dict[tuple[str, str], dict[str, Resource]] = {}
        self._served: dict[tuple[str, str], dict[str, Resource]] = {}
        for resource in self.built_in:
            where = self._hidden if resource in hidden else self._served
            where.setdefault((resource.group, resource.version), {})[resource.resource] = resource
        self.built_in = tuple(each for each in self.built_in if each not in hidden)
        self._fixed = frozenset(self._served)
        self._stored: dict[tuple[str, str], Resource] = {}
        self._stored_generation = -1
        """Results of `stored` for all resources, and the generation that they were made for."""

    def __iter__(self) -> Iterator[Resource]:
        for resources in (*self._served.values(), *self._hidden.values()):
            yield from resources.values()

    def group_versions(self) -> Iterable[tuple[str, str]]:
        return self._served.keys()

    def versions(self, group: str) -> list[str]:
        return [version for known, version in self._served if known == group]

    def of(self, group: str, version: str) -> dict[str, Resource] | None:
        """Resources of a group-version by plural; None if the group-version is not served."""
        return self._served.get((group, version))

    def is_custom(self, group: str, version: str) -> bool:
        """Whether the group-version has only custom resources."""
        return (group, version) not in self._fixed

    def get(self, group: str, version: str, resource: str) -> Resource | None:
        """A resource, hidden or not, for the server itself. Clients get the resources of `of`."""
        for resources in (self._served.get((group, version)), self._hidden.get((group, version))):
            if resources is not None and resource in resources:
                return resources[resource]
        return None

    def stored(self, group: str, resource: str) -> Resource | None:
        """Resource in its stored version, else in any served version; None if it is not served."""
        if self._stored_generation != self.generation:
            self._stored = {}
            for candidate in self:
                key = candidate.group, candidate.resource
                current = self._stored.get(key)
                if current is None or (_is_stored(candidate) and not _is_stored(current)):
                    self._stored[key] = candidate
            self._stored_generation = self.generation
        return self._stored.get((group, resource))

    def add(self, resource: Resource) -> None:
        self._served.setdefault((resource.group, resource.version), {})[resource.resource] = resource
        self._arrange()
        self.generation += 1

    def extend(self, resources: Iterable[Resource]) -> None:
        """Adds built-in resources that few servers have. Their group-versions are new."""
        for resource in resources:
            self._served.setdefault((resource.group, resource.version), {})[resource.resource] = resource
            self.built_in = (*self.built_in, resource)
            self._fixed |= {(resource.group, resource.version)}
        self._arrange()
        self.generation += 1

    def _arrange(self) -> None:
        """Orders groups: built-in groups first, then custom groups by name, with the versions of each by priority."""
        fixed = {key: resources for key, resources in self._served.items() if key in self._fixed}
        added = {key: resources for key, resources in self._served.items() if key not in fixed}
        for key in sorted(added, key=lambda key: (key[0], priority(key[1]))):
            fixed[key] = dict(sorted(added[key].items()))
        self._served = fixed

    def remove(self, group: str, version: str, resource: str) -> None:
        resources = self._served.get((group, version))
        if resources is not None and resources.pop(resource, None) is not None:
            if not resources:
                del self._served[group, version]
            self.generation += 1


def path_of(resource: Resource, namespace: str | None, name: str = "") -> str:
    """URL path of a resource, or of one object. Without a namespace, the path covers all namespaces."""
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    scope = (
        f"/namespaces/{quote(namespace, safe=':')}" if resource.namespaced and namespace is not None else ""
    )
    return f"{root}{scope}/{resource.resource}" + (f"/{quote(name, safe=':')}" if name else "")
