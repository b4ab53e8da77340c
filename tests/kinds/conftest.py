"""Test driver for strategies without a server: decodes, defaults, prepares and validates objects."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from kubist.api.config import Config
from kubist.api.resources.context import User
from kubist.api.resources.resource import Resources
from kubist.api.resources.strategy import Update
from kubist.api.verbs.validation import kind_errors
from kubist.api.verbs.write_path import prepare_for_create, prepare_for_update
from kubist.model.meta.object import Object
from kubist.model.schema.strict import decode_value

Causes = list[tuple[str, str]]


class Kind:
    """Driver of one kind's strategy: objects as YAML, causes as (field, reason)."""

    def __init__(self, api_version: str, kind: str) -> None:
        self.resource = next(r for r in Resources() if (r.api_version, r.kind) == (api_version, kind))
        self.strategy, self.schema = self.resource.strategy, self.resource.schema
        self.context: Any = SimpleNamespace(
            resource=self.resource,
            now="2030-01-01T00:00:00Z",
            config=Config(),
            dry_run=False,
            name="x",
            user=User("someone"),
            objects=SimpleNamespace(get=lambda *_, **__: None, list=lambda *_, **__: iter(())),
        )

    def decode(self, given: str | Object) -> Object:
        """Decoded object in canonical form, with common metadata and defaults."""
        obj = yaml.safe_load(given) if isinstance(given, str) else copy.deepcopy(given)
        metadata = {"name": "x", **(obj.get("metadata") or {})}
        if self.resource.namespaced:
            metadata.setdefault("namespace", "d")
        type_ = {"apiVersion": self.resource.api_version, "kind": self.resource.kind}
        whole = {**type_, **obj, "metadata": metadata}
        decoded: Object = decode_value(self.schema, whole).object
        self.strategy.default(decoded)
        return decoded

    def create(self, given: str | Object) -> Object:
        obj = self.decode(given)
        prepare_for_create(self.context, obj)
        return obj

    def create_errors(self, given: str | Object) -> Causes:
        """Causes with which a create is rejected."""
        return causes(self.strategy.validate(self.context, self.create(given), None))

    def warnings(self, given: str | Object) -> list[str]:
        return list(self.strategy.warnings(self.context, self.create(given), None))

    def update(self, old: str | Object, new: str | Object, subresource: str = "") -> Object:
        """New object after preparation of an update of the old one."""
        before, after = self.decode(old), self.decode(new)
        prepare_for_update(self.context, self._update_rules(subresource), after, before)
        return after

    def update_errors(self, old: str | Object, new: str | Object, subresource: str = "") -> Causes:
        before = self.decode(old)
        after = self.update(old, new, subresource)
        return causes(kind_errors(self.context, self._update_rules(subresource), after, before))

    def stored(self, given: str | Object) -> Object:
        """Created object as stored. Fails if the create is rejected."""
        obj = self.create(given)
        assert causes(self.strategy.validate(self.context, obj, None)) == []
        return obj

    def changed(self, old: Object, how: Callable[[Object], Any], subresource: str = "") -> Object:
        """Stored object after a client's change in place."""
        return self.update(old, _edited(old, how), subresource)

    def change_errors(self, old: Object, how: Callable[[Object], Any], subresource: str = "") -> Causes:
        return self.update_errors(old, _edited(old, how), subresource)

    def _update_rules(self, subresource: str) -> Update:
        rules = self.strategy.subresources[subresource] if subresource else self.strategy
        assert isinstance(rules, Update)
        return rules


def _edited(obj: Object, how: Callable[[Object], Any]) -> Object:
    new = copy.deepcopy(obj)
    how(new)
    return new


def causes(errors: list[Any]) -> Causes:
    return [(error.field, error.reason.removeprefix("FieldValue")) for error in errors]


@pytest.fixture
def kind_of() -> Callable[[str, str], Kind]:
    return Kind


@pytest.fixture
def bare_context() -> Any:
    """Request context without a cluster."""
    return Kind("v1", "ConfigMap").context
