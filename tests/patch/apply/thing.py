"""Test kind with a field for each way to split values, and a helper with one object of it."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kubist.model.patch.apply import apply, paths, restore_times, sets, update_managed_fields
from kubist.model.schema.node import Field, Schema
from tests.schema.strategies import JSON, fitting

API_VERSION = "example.com/v1"


def struct(**fields: Schema) -> Schema:
    return Schema("struct", fields={name: Field(name, schema) for name, schema in fields.items()})


text = Schema("string")
texts = Schema("map", items=text)
number = Schema("integer")
port = struct(port=number, protocol=Schema("string", default="TCP"), name=text)
part = struct(name=text, size=number, tags=Schema("list", items=text, list_type="set"), labels=texts)

FIELDS = {
    "apiVersion": text,
    "kind": text,
    "metadata": struct(name=text, labels=texts, annotations=texts, managedFields=Schema("list")),
    "a": text,
    "b": text,
    "count": number,
    "inner": struct(x=text, y=text, deep=struct(z=text)),
    "map": texts,
    "whole": Schema("map", items=text, map_type="atomic"),
    "list": Schema("list", items=text, list_type="atomic"),
    "set": Schema("list", items=text, list_type="set"),
    "parts": Schema("list", items=part, list_type="map", map_keys=("name",)),
    "ports": Schema("list", items=port, list_type="map", map_keys=("port", "protocol")),
    "free": Schema("any"),
    "open": Schema("struct", fields={"known": Field("known", text)}, preserve_unknown=True),
}
THING = struct(**FIELDS)


_texts = st.sampled_from(["a", "b", "<c>", "", "10", "9"])
_numbers = st.sampled_from([1, 1.0, True, 9, 10])
_parts = st.dictionaries(
    st.sampled_from(["name", "size", "tags", "labels", "other"]), _texts | JSON, max_size=4
)
_ports = st.fixed_dictionaries({}, optional={"port": _numbers, "protocol": _texts, "name": _texts})

things = st.fixed_dictionaries(
    {"metadata": st.dictionaries(st.sampled_from(["name", "labels", "uid"]), JSON, max_size=3)},
    optional={
        **{
            name: st.none() | fitting(field.schema)
            for name, field in THING.fields.items()
            if name != "metadata"
        },
        "parts": st.none() | st.lists(_parts | st.fixed_dictionaries({"name": _texts}), max_size=4),
        "ports": st.lists(_ports, max_size=4),
        "set": st.lists(_texts | _numbers, max_size=4),
        "free": JSON,
        "unknown": JSON,
    },
)
"""Objects of the kind and others that are nearly so: with nulls, names that repeat, numbers that equal each other."""


class World:
    """One object with many writers."""

    def __init__(self, schema: Schema = THING) -> None:
        self.schema = schema
        self.object: dict[str, Any] | None = None
        self.clock = 0

    def _now(self) -> str:
        self.clock += 1
        return f"2026-01-01T00:00:{self.clock:02}Z"

    def _complete(self, content: dict[str, Any]) -> dict[str, Any]:
        metadata = {"name": "thing", **content.get("metadata", {})}
        return {"apiVersion": API_VERSION, "kind": "Thing", **content, "metadata": metadata}

    def apply(self, content: dict[str, Any], by: str, **options: Any) -> None:
        options = {"api_version": API_VERSION, "now": self._now(), **options}
        new = apply(self.schema, self.object, self._complete(content), manager=by, **options)
        new = without_nulls(new)
        if self.object is not None:
            restore_times(self.object, new)
        self.object = new

    def update(self, content: dict[str, Any], by: str, **options: Any) -> None:
        new = self._complete(content)
        options = {"api_version": API_VERSION, "now": self._now(), **options}
        update_managed_fields(self.schema, self.object, new, manager=by, **options)
        self.object = new

    @property
    def content(self) -> dict[str, Any]:
        """Object without the fields that all objects have."""
        assert self.object is not None
        metadata = {k: v for k, v in self.object["metadata"].items() if k not in ("name", "managedFields")}
        content = {k: v for k, v in self.object.items() if k not in ("apiVersion", "kind", "metadata")}
        return {**content, "metadata": metadata} if metadata else content

    @property
    def owners(self) -> dict[str, list[str]]:
        assert self.object is not None
        return {
            entry["manager"] + ("" if entry["operation"] == "Apply" else " (update)"): [
                paths.format_path(path) for path in sets.paths(entry["fieldsV1"])
            ]
            for entry in self.object["metadata"].get("managedFields", ())
        }


def without_nulls(value: Any) -> Any:
    """Value without nulls, as decoding gives it."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value
