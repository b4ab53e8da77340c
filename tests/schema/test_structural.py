"""Custom resources: pruning and defaulting by a structural schema."""

from typing import Any

from kubist.model.schema.node import Field, Schema
from kubist.model.schema.structural import compile_defaults, drop_nulls, prune


def struct(fields: dict[str, Schema], **options: Any) -> Schema:
    return Schema("struct", fields={name: Field(name, schema) for name, schema in fields.items()}, **options)


STRING = Schema("string")


def test_unknown_fields_are_pruned_and_reported() -> None:
    schema = struct({"spec": struct({"a": STRING, "list": Schema("list", items=struct({"b": STRING}))})})
    value = {
        "apiVersion": "x/v1",
        "kind": "X",
        "metadata": {"name": "n", "odd": 1},
        "spec": {"a": "1", "z": 1, "list": [{"b": "1", "c": "2"}]},
        "status": {},
    }
    assert prune(schema, value) == ["spec.list[0].c", "spec.z", "status"]
    assert value["spec"] == {"a": "1", "list": [{"b": "1"}]}
    assert value["metadata"] == {"name": "n", "odd": 1}


def test_preserved_fields_stay_but_known_ones_below_are_pruned() -> None:
    schema = struct({"free": struct({"known": struct({"a": STRING})}, preserve_unknown=True)})
    value = {"free": {"x": {"y": 1}, "known": {"a": "1", "b": 2}}}
    assert prune(schema, value) == ["free.known.b"]
    assert value == {"free": {"x": {"y": 1}, "known": {"a": "1"}}}


def test_embedded_resources_keep_their_metadata() -> None:
    schema = struct({"template": struct({"spec": struct({})}, embedded_resource=True)})
    value = {"template": {"kind": "Pod", "metadata": {"name": "x"}, "spec": {"z": 1}, "data": 1}}
    assert prune(schema, value) == ["template.data", "template.spec.z"]
    assert value == {"template": {"kind": "Pod", "metadata": {"name": "x"}, "spec": {}}}


def test_maps_accept_any_key() -> None:
    schema = struct({"by": Schema("map", items=struct({"a": STRING}))})
    value = {"by": {"x": {"a": "1", "b": "2"}}}
    assert prune(schema, value) == ["by.x.b"]


def test_defaults_fill_absent_fields_and_forbidden_nulls() -> None:
    schema = struct(
        {
            "a": Schema("string", default="x"),
            "n": Schema("string", default="x", nullable=True),
            "deep": struct({"b": Schema("integer", default=3)}, default={}),
            "absent": struct({"b": Schema("integer", default=3)}),
            "list": Schema("list", items=struct({"c": Schema("boolean", default=True)})),
            "by": Schema("map", items=Schema("string", default="y")),
        }
    )
    value: dict[str, Any] = {"a": None, "n": None, "list": [{}], "by": {"k": None}}
    fill = compile_defaults(schema)
    if fill is not None:
        fill(value)
    assert value == {"a": "x", "n": None, "deep": {"b": 3}, "list": [{"c": True}], "by": {"k": "y"}}


def test_nulls_without_default_are_dropped_unless_nullable() -> None:
    schema = struct({"a": STRING, "b": Schema("string", nullable=True), "c": Schema("string", default="x")})
    value = {"a": None, "b": None, "c": None, "unknown": None}
    drop_nulls(schema, value)
    assert value == {"b": None, "c": None, "unknown": None}
