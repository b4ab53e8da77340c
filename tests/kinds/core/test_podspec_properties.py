"""Property test: default, prepare, validate and warn never raise for a pod that fits the schema."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubist.api.config import Config
from kubist.api.kinds.core.pod import strategy
from kubist.model.schema.catalog import by_name, schema_for
from kubist.model.schema.node import Schema
from kubist.model.schema.strict import decode_value

TEXTS = st.sampled_from(["", "a", "A b", "../x", "/x", "1.2.3.4", "In", "Localhost", "Always", "x" * 70, "é"])
FORMATS: dict[str, st.SearchStrategy[Any]] = {
    "quantity": st.sampled_from(["0", "1", "-1", "500m", "1.5Gi", "1n"]),
    "time": st.just("2024-01-02T03:04:05Z"),
    "int-or-string": st.sampled_from([80, -1, "web", ""]),
}
NUMBERS = st.sampled_from([-1, 0, 1, 80, 512, 65536, 2**31 - 1])


@st.composite
def values(draw: st.DrawFn, schema: Schema, depth: int = 0) -> Any:
    """Value of the schema with few of its fields."""
    if schema.format in FORMATS:
        return draw(FORMATS[schema.format])
    match schema.type:
        case "struct":
            names = sorted(schema.fields)
            chosen = draw(st.lists(st.sampled_from(names), max_size=4, unique=True)) if depth < 7 else []
            return {name: draw(values(schema.fields[name].schema, depth + 1)) for name in chosen}
        case "list" | "map":
            assert schema.items is not None
            item = draw(values(schema.items, depth + 1))
            return [item] if schema.type == "list" else {draw(TEXTS): item}
        case "string":
            return draw(TEXTS)
        case "boolean":
            return draw(st.booleans())
        case "integer":
            return draw(NUMBERS)
    return {}


POD = schema_for("", "v1", "Pod")
PARTS = st.fixed_dictionaries(
    {
        "apiVersion": st.just("v1"),
        "kind": st.just("Pod"),
        "metadata": st.just({"name": "p", "namespace": "d", "labels": {"a": "b"}}),
        "spec": values(by_name("io.k8s.api.core.v1.PodSpec")),
        "status": values(by_name("io.k8s.api.core.v1.PodStatus")),
    }
)


def decoded(value: Any) -> Any:
    obj = decode_value(POD, value).object
    strategy.default(obj)
    return obj


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(PARTS, PARTS)
def test_arbitrary_pods_never_raise(first: Any, second: Any) -> None:
    context: Any = SimpleNamespace(now="2030-01-01T00:00:00Z", config=Config(), warn=lambda text: None)
    old = decoded(first)
    strategy.prepare(context, old, None)
    strategy.validate(context, old, None)
    list(strategy.warnings(context, old, None))
    strategy.selectable_fields(old)
    for way in (
        strategy,
        *(strategy.subresources[name] for name in ("status", "resize", "ephemeralcontainers")),
    ):
        new: Any = decoded(second)
        changed: Any = way
        changed.prepare(context, new, old)
        changed.validate(context, new, old)
