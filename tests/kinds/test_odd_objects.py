"""Random objects of every kind: validation accepts or rejects them, and never raises."""

import random
from types import SimpleNamespace
from typing import Any

import pytest

from kubist.api.resources.resource import Resource, Resources
from kubist.api.resources.strategy import Update
from kubist.api.verbs.validation import kind_errors
from kubist.api.verbs.write_path import prepare_for_create, prepare_for_update
from kubist.base.jsontext.errors import DecodeError
from kubist.model.schema.node import Schema
from kubist.model.schema.strict import decode_value

ROUNDS = 60
TEXTS = (
    "",
    "a",
    "A b",
    "x.y/z",
    "10.0.0.1",
    "fd00::1",
    "10.0.0.0/8",
    "None",
    "TCP",
    "Local",
    "NodePort",
    "80",
    "/p",
)
NUMBERS = (0, 1, -1, 80, 70000, 2**31 - 1)
FORMATS: dict[str, tuple[Any, ...]] = {
    "quantity": ("0", "1", "-1", "1Gi", "500m", "1e3"),
    "time": ("2024-01-01T00:00:00Z", None),
    "microtime": ("2024-01-01T00:00:00.000000Z", None),
    "byte": ("", "eA=="),
    "int-or-string": (0, 80, -1, "http", "50%", ""),
    "duration": ("5s",),
}


def odd(schema: Schema, chance: random.Random, depth: int = 0) -> Any:
    """Random value of the right type."""
    if schema.format in FORMATS:
        return chance.choice(FORMATS[schema.format])
    if schema.type == "struct":
        share = 0.5 if depth < 3 else 0.25
        return {
            name: odd(field.schema, chance, depth + 1)
            for name, field in schema.fields.items()
            if depth < 9 and chance.random() < share
        }
    if schema.type == "list" and schema.items is not None:
        return [odd(schema.items, chance, depth + 1) for _ in range(chance.randrange(3))]
    if schema.type == "map" and schema.items is not None:
        return {
            chance.choice(TEXTS): odd(schema.items, chance, depth + 1) for _ in range(chance.randrange(3))
        }
    if schema.type == "integer":
        return chance.choice(NUMBERS)
    if schema.type == "boolean":
        return chance.choice((True, False))
    return chance.choice(schema.enum or TEXTS) if schema.type == "string" else {}


def stored() -> list[Resource]:
    return [r for r in Resources() if "update" in r.verbs and r.strategy.virtual is None]


def made(resource: Resource, chance: random.Random) -> dict[str, Any] | None:
    obj = odd(resource.schema, chance)
    obj |= {"apiVersion": resource.api_version, "kind": resource.kind}
    obj["metadata"] = {"name": "x", "uid": "u"} | ({"namespace": "d"} if resource.namespaced else {})
    try:
        decoded: dict[str, Any] = decode_value(resource.schema, obj).object
    except DecodeError:
        return None
    resource.strategy.default(decoded)
    if resource.api_version != resource.storage_version:
        decoded = resource.strategy.convert(decoded, resource.storage_version)
    return decoded


@pytest.mark.parametrize("resource", stored(), ids=lambda resource: f"{resource.resource}.{resource.version}")
def test_odd_objects_are_accepted_or_rejected(resource: Resource, bare_context: Any) -> None:
    chance = random.Random(resource.resource)
    strategy = resource.strategy
    ways = [strategy, *(way for way in strategy.subresources.values() if isinstance(way, Update))]
    for _ in range(ROUNDS):
        one, other = made(resource, chance), made(resource, chance)
        if one is None or other is None:
            continue
        context: Any = SimpleNamespace(**vars(bare_context) | {"resource": resource})
        prepare_for_create(context, one)
        strategy.validate(context, one, None)
        list(strategy.warnings(context, one, None))
        strategy.selectable_fields(one)
        for way in ways:
            prepare_for_update(context, way, other, one)
            kind_errors(context, way, other, one)
            list(way.warnings(context, other, one))
