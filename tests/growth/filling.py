"""Objects with thousands of items in one list or map, for every such field of every kind."""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kubist.api.resources.resource import Resource
from kubist.model.meta.object import Object
from kubist.model.schema.node import Schema

Path_ = tuple[str, ...]
ITEM = "*"
"""Step of a path from a list or map to its items."""
VARIANTS = ("distinct", "repeated", "shuffled")
SCENARIOS = Path(__file__).parent.parent / "conformance" / "scenarios"
METADATA: tuple[Path_, ...] = tuple(
    ("metadata", name) for name in ("labels", "annotations", "ownerReferences", "finalizers", "managedFields")
)
TEXTS = {
    "addressType": "IPv4",
    "apiVersion": "v1",
    "cidr": "10.{high}.{low}.0/24",
    "effect": "NoSchedule",
    "expression": "{i} > 0",
    "fieldsType": "FieldsV1",
    "image": "image:{i}",
    "ip": "10.1.{high}.{low}",
    "mountPath": "/m/{i}",
    "operation": "Update",
    "operator": "Exists",
    "path": "/p/{i}",
    "protocol": "TCP",
    "topologyKey": "example.com/x{i}",
    "whenUnsatisfiable": "DoNotSchedule",
}
"""Texts that pass validation, by field name."""
FORMATS: dict[str, Any] = {
    "quantity": "1",
    "time": "2024-01-01T00:00:00Z",
    "microtime": "2024-01-01T00:00:00.000000Z",
    "byte": "eA==",
    "duration": "5s",
    "fields-v1": {"f:data": {"f:a": {}}},
}


def long_fields(schema: Schema, path: Path_ = (), seen: Path_ = ()) -> Iterator[Path_]:
    """Paths of all lists and maps below a schema, except metadata. A recursive type is entered once."""
    if schema.name:
        if schema.name in seen:
            return
        seen = (*seen, schema.name)
    if schema.type in ("list", "map"):
        yield path
        if schema.items is not None:
            yield from long_fields(schema.items, (*path, ITEM), seen)
    elif schema.type == "struct":
        for name, field in schema.fields.items():
            if path or name != "metadata":
                yield from long_fields(field.schema, (*path, name), seen)


def below(schema: Schema, path: Path_) -> Schema:
    for step in path:
        found = schema.items if step == ITEM else schema.fields[step].schema
        assert found is not None
        schema = found
    return schema


def sample(schema: Schema, name: str = "", i: int = 0) -> Any:
    """Value with all required fields and merge keys. It differs for each `i`."""
    if schema.format in FORMATS:
        return FORMATS[schema.format]
    if schema.int_or_string or schema.format == "int-or-string":
        return i % 60000 + 1
    match schema.type:
        case "struct":
            return {
                key: sample(field.schema, key, i)
                for key, field in schema.fields.items()
                if field.required
                or key in ("name", "key", "ip", "operator", "manager", "operation", "fieldsV1")
                or (key == "port" and field.schema.type == "integer")
            }
        case "list":
            return [sample(schema.items, name, i)] if schema.items is not None else []
        case "map":
            return {f"k{i}": sample(schema.items, name, i)} if schema.items is not None else {}
        case "integer" | "number":
            return i % 60000 + 1
        case "boolean":
            return False
        case "string":
            if schema.enum:
                return schema.enum[i % len(schema.enum)]
            return TEXTS.get(name, "x{i}").format(i=i, high=i // 250 % 250, low=i % 250)
    return {}


def many(schema: Schema, path: Path_, count: int, variant: str) -> Any:
    """`count` items for a list or map. Repeated items share their key; maps cannot repeat a key."""
    name = path[-1] if path[-1] != ITEM else ""
    items = schema.items
    assert items is not None
    numbers = range(count)
    if schema.type == "map":
        order = reversed(numbers) if variant == "shuffled" else numbers
        return {f"example.com/k{i}" if "." not in name else f"k{i}": sample(items, name, i) for i in order}
    if variant == "shuffled":
        return [sample(items, name, i * 7919 % count) for i in numbers]
    if variant == "repeated":
        return [sample(items, name, 1) for _ in numbers]
    return [sample(items, name, i) for i in numbers]


def filled(template: Object, schema: Schema, path: Path_, count: int, variant: str) -> Object:
    """Copy of `template` with `count` items at `path`. Missing structs on the path are created."""
    obj = copy.deepcopy(template)
    if path == ("metadata", "finalizers"):
        values = many(below(schema, path), path, count, variant)
        obj["metadata"]["finalizers"] = [f"example.com/{value}" for value in values]
        return obj
    at: Any = obj
    node = schema
    for step, following in itertools.pairwise(path):
        inner = node.items if step == ITEM else node.fields[step].schema
        assert inner is not None
        if step == ITEM:
            key: Any = 0 if node.type == "list" else next(iter(at), "k")
            if not at:
                made = sample(inner, "", 1)
                at.append(made) if node.type == "list" else at.update({key: made})
        else:
            key = step
            if not at.get(key):
                at[key] = sample(inner, step, 1)
        if following == ITEM and not at[key]:
            at[key] = [] if inner.type == "list" else {}
        at, node = at[key], inner
    value = many(below(schema, path), path, count, variant)
    if path[-1] == ITEM:
        if node.type == "list":
            at[:] = [value]
        else:
            at["k"] = value
    else:
        at[path[-1]] = value
    return obj


@cache
def recorded_bodies() -> dict[str, list[Object]]:
    """Bodies of recorded creates by kind and apiVersion, the longest first."""
    found: dict[str, list[Object]] = {}
    for file in sorted(SCENARIOS.glob("*.yaml")):
        scenario = yaml.load(file.read_text(), yaml.CSafeLoader)
        names = scenario.get("vars") or {}
        for step in scenario["steps"]:
            body = step.get("body")
            if "POST" not in step or not isinstance(body, dict) or "kind" not in body:
                continue
            text = json.dumps(body)
            for name in re.findall(r"\$\{(\w+)\}", text):
                text = text.replace(f"${{{name}}}", str(names.get(name, "x")))
            body = json.loads(text)
            found.setdefault(f"{body.get('apiVersion')} {body['kind']}", []).append(body)
    for bodies in found.values():
        bodies.sort(key=lambda body: -len(json.dumps(body)))
    return found


def candidates(resource: Resource) -> list[Object]:
    """Objects that a create may accept: recorded ones, and one with only its required fields."""
    made = sample(resource.schema, "", 1)
    bodies = [*recorded_bodies().get(f"{resource.api_version} {resource.kind}", []), made]
    return [
        {**body, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "x"}}
        for body in bodies
    ]
