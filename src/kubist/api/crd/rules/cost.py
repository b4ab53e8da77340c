"""Estimated cost of the CEL rules of a schema: the cost of each rule times its maximum number of evaluations, and the
total."""

from __future__ import annotations

from typing import Any

Props = dict[str, Any]

RULE_LIMIT = 10_000_000
SCHEMA_LIMIT = 100_000_000
MAX = (1 << 64) - 1


def times(cost: int, cardinality: int) -> int:
    return min(cost * cardinality, MAX)


class Total:
    """Sum of the costs of a whole schema, and its 4 most expensive rules (each at least 1 % of SCHEMA_LIMIT)."""

    def __init__(self) -> None:
        self.total = 0
        self.most: list[tuple[str, int]] = []

    def observe(self, path: str, cost: int) -> None:
        self.total = min(self.total + cost, MAX)
        if cost >= SCHEMA_LIMIT // 100:
            self.most = sorted([*self.most, (path, cost)], key=lambda pair: -pair[1])[:4]


class SchemaCost:
    """A schema node and its cardinality: the maximum number of its values in one object, or None if unbounded."""

    def __init__(
        self, props: Props, cardinality: int | None = 1, total: Total | None = None, *, root: bool = True
    ) -> None:
        self.props = props
        self.cardinality = cardinality
        self.total = total if total is not None else Total()
        self.resource = root or bool(props.get("x-kubernetes-embedded-resource"))

    def _child(self, props: Props) -> SchemaCost:
        most = _elements(self.props)
        known = self.cardinality is not None and most is not None
        cardinality = times(self.cardinality or 0, most or 0) if known else None
        return SchemaCost(props, cardinality, self.total, root=False)

    def property(self, props: Props) -> SchemaCost:
        return self._child(props)

    def items(self, props: Props) -> SchemaCost:
        return self._child(props)

    def additional(self, props: Props) -> SchemaCost:
        return self._child(props)


def _elements(props: Props) -> int | None:
    """Maximum number of children of a value; None if the schema sets no maximum."""
    kind = props.get("type")
    if kind == "array":
        most = props.get("maxItems")
    elif kind == "object" and props.get("additionalProperties") is not None:
        most = props.get("maxProperties")
    else:
        return 1
    return max(most, 0) if most is not None else None


def excess(what: str, cost: int, limit: int) -> str:
    """Error message for a cost above its limit."""
    factor = cost / limit
    if factor > 100:
        by = "more than 100x"
    elif factor < 1.5:
        by = f"{factor:f}x"
    else:
        by = f"{factor:.1f}x"
    return (
        f"{what} exceeds budget by factor of {by} (try simplifying the rule, or adding maxItems, maxProperties, and "
        "maxLength where arrays, maps, and strings are declared)"
    )
