"""Resources: what is served where. The built-in ones are static and shared; a server adds custom ones.

A `Resource` is one (group, version, plural); several versions of one kind share a `collection`.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import resources as package_files
from typing import TYPE_CHECKING, Any

from kubist.kinds.strategy import Strategy

if TYPE_CHECKING:
    from kubist.schema.node import Schema


@dataclass(slots=True, frozen=True)
class SubresourceInfo:
    """A sub-resource as discovery tells it."""

    name: str
    kind: str
    group: str
    version: str
    verbs: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Resource:
    """One plural of one group-version."""

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
    custom: bool = False
    """Defined by a CustomResourceDefinition: lists say more, patches less."""
    storage_version: str = ""
    """The apiVersion that is stored, for every version of the kind."""
    prefix: str = ""
    """Key prefix of the collection, with a trailing slash: `/registry/pods/`."""
    storage_version_hash: str = ""
    _strategy: Strategy | None = None
    _schema: Schema | None = None

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def strategy(self) -> Strategy:
        if self._strategy is None:
            self._strategy = _load_strategy(self.group, self.kind)
        return self._strategy

    @property
    def schema(self) -> Schema:
        if self._schema is None:
            from kubist.schema.catalog import schema_for

            self._schema = schema_for(self.group, self.version, self.kind)
        return self._schema

    def key(self, namespace: str, name: str) -> str:
        return f"{self.prefix}{namespace}/{name}" if self.namespaced else self.prefix + name


GROUP_ROOMS = {
    "": "core",
    "internal.apiserver.k8s.io": "apiserverinternal",
    "rbac.authorization.k8s.io": "rbac",
}
"""Where the kinds of a group live if not in the folder named by the first part of the group's name."""


def _load_strategy(group: str, kind: str) -> Strategy:
    room = GROUP_ROOMS.get(group, group.split(".")[0])
    name = f"kubist.kinds.{room}.{kind.lower()}"
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        found = None
    if found is None:
        return Strategy()
    strategy = importlib.import_module(name).strategy
    assert isinstance(strategy, Strategy)
    return strategy
