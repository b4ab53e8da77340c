"""Hypothesis strategies: arbitrary JSON, and JSON that nearly fits a schema."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kubist.model.schema.node import Schema

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)

_FORMATS: dict[str, st.SearchStrategy[Any]] = {
    "quantity": st.sampled_from(["0", "1", "500m", "1.5Gi", "1e3", "+3", ".5", 7, None]),
    "time": st.sampled_from(["2024-01-02T03:04:05Z", "2024-01-02T03:04:05.5+02:00", None]),
    "microtime": st.sampled_from(["2024-01-02T03:04:05.000001Z", None]),
    "byte": st.sampled_from(["", "YQ==", "YW\nJj", None]),
    "int-or-string": st.integers(-(2**31), 2**31 - 1) | TEXT,
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-1000, 1000),
    "schema-or-bool": st.booleans() | st.just({"type": "string"}),
    "schema-or-array": st.just({"type": "string"}) | st.just([{"type": "string"}]),
    "schema-or-strings": st.just({"type": "string"}) | st.just(["a"]),
}
_TYPES = {"string": TEXT, "boolean": st.booleans()}


@st.composite
def fitting(draw: st.DrawFn, schema: Schema, depth: int = 0) -> Any:
    """Value of the schema with few of its fields."""
    if schema.format in _FORMATS:
        return draw(_FORMATS[schema.format])
    if schema.type in _TYPES:
        return draw(_TYPES[schema.type])
    if schema.type == "struct":
        names = sorted(set(schema.fields) - {"kind", "apiVersion"})
        if not names or depth > 5:
            return {}
        chosen = draw(st.lists(st.sampled_from(names), max_size=4 if depth else 5, unique=True))
        return {name: draw(fitting(schema.fields[name].schema, depth + 1)) for name in chosen}
    if schema.type in ("list", "map"):
        assert schema.items is not None
        items = [draw(fitting(schema.items, depth + 1)) for _ in range(draw(st.integers(0, 2)))]
        return items if schema.type == "list" else {f"k{index}": item for index, item in enumerate(items)}
    return draw(st.sampled_from([{}, {"a": [1, None]}, {"kind": "X"}]))


@st.composite
def nearly_fitting(draw: st.DrawFn, schema: Schema) -> Any:
    """Value of the schema with a part replaced by arbitrary JSON."""
    value = draw(fitting(schema))
    at: Any = value
    while isinstance(at, dict) and at:
        key = draw(st.sampled_from(sorted(at)))
        if not isinstance(at[key], dict) or not at[key] or draw(st.booleans()):
            at[key] = draw(JSON)
            break
        at = at[key]
    return value
