"""The creator's field set equals a comparison with an empty object, for all kinds and objects."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubist.model.patch.apply import managers
from kubist.model.patch.apply.compare import compare
from kubist.model.patch.apply.created import creator
from kubist.model.patch.apply.empty import empty
from kubist.model.patch.apply.sets import Set, dotted
from kubist.model.patch.apply.typed import BadValue, type_of
from kubist.model.schema.catalog import schema_for
from kubist.model.schema.decode import decode
from kubist.model.schema.node import Schema
from tests.schema.strategies import fitting, nearly_fitting

from .thing import THING, things

BUILT_IN = [
    schema_for("", "v1", "Pod"),
    schema_for("", "v1", "Service"),
    schema_for("", "v1", "Secret"),
    schema_for("apps", "v1", "Deployment"),
    schema_for("storage.k8s.io", "v1", "StorageClass"),
    schema_for("certificates.k8s.io", "v1", "CertificateSigningRequest"),
    schema_for("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
    schema_for("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
]
RESETS = [
    (),
    ("status",),
    ("metadata", "spec"),
    ("spec", "metadata.labels"),
    ("spec", "status.conditions"),
    ("inner.x", "parts"),
    ("metadata.name", "spec.containers"),
    ("apiVersion", "kind", "metadata.labels.a"),
]
MANY = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def agree(schema: Schema, obj: dict[str, Any], reset: tuple[str, ...]) -> None:
    try:
        comparison = compare(type_of(schema), empty(schema), obj).without(dotted(*reset))
    except BadValue:
        with pytest.raises(BadValue):
            creator(schema, reset)(obj)
        return
    assert spelled(creator(schema, reset)(obj) or {}) == spelled(managers.tracked(comparison.changed))


def spelled(fields: Set) -> bytes:
    """JSON text, because clients see the order of a set."""
    return orjson.dumps(fields)


@given(st.data(), st.sampled_from(BUILT_IN), st.sampled_from(RESETS))
@MANY
def test_creator_of_built_in_kinds_equals_a_comparison(
    data: st.DataObject, schema: Schema, reset: tuple[str, ...]
) -> None:
    obj = decode(schema, {"metadata": {"name": "x"}, **data.draw(fitting(schema))})
    agree(schema, obj, reset)
    agree(schema, dict(reversed(obj.items())), reset)


@given(st.data(), st.sampled_from(BUILT_IN), st.sampled_from(RESETS))
@MANY
def test_creator_of_mistyped_objects_equals_a_comparison(
    data: st.DataObject, schema: Schema, reset: tuple[str, ...]
) -> None:
    agree(schema, {**empty(schema), **data.draw(nearly_fitting(schema))}, reset)


@given(things, st.sampled_from(RESETS))
@MANY
def test_creator_of_custom_resources_equals_a_comparison(
    thing: dict[str, Any], reset: tuple[str, ...]
) -> None:
    agree(THING, thing, reset)


@given(st.lists(things, min_size=2, max_size=4))
@MANY
def test_cached_shapes_equal_a_comparison(many: list[dict[str, Any]]) -> None:
    for thing in [*many, *reversed(many)]:
        agree(THING, thing, ("status",))


@pytest.mark.parametrize("schema", BUILT_IN)
def test_empty_object_has_no_owned_fields(schema: Schema) -> None:
    assert creator(schema, ())(empty(schema)) is None
