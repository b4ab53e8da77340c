"""What the rules of a schema may cost at most: how often each may be tried on one object, and the sum of all."""

from __future__ import annotations

from typing import Any

Props = dict[str, Any]

RULE_LIMIT = 10_000_000
SCHEMA_LIMIT = 100_000_000
MAX = (1 << 64) - 1


def times(cost: int, cardinality: int) -> int:
    return min(cost * cardinality, MAX)


class Total:
    """The sum over a whole schema, and the rules that contribute most to it."""

    def __init__(self) -> None:
        self.total = 0
        self.most: list[tuple[str, int]] = []

    def observe(self, path: str, cost: int) -> None:
        self.total = min(self.total + cost, MAX)
        if cost >= SCHEMA_LIMIT // 100:
            self.most = sorted([*self.most, (path, cost)], key=lambda pair: -pair[1])[:4]


class SchemaCost:
    """A place in the schema: how many values of one object may be there, if that can be said."""

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
    """How many children a value may have at most."""
    kind = props.get("type")
    if kind == "array":
        most = props.get("maxItems")
    elif kind == "object" and props.get("additionalProperties") is not None:
        most = props.get("maxProperties")
    else:
        return 1
    return max(most, 0) if most is not None else None


def excess(what: str, cost: int, limit: int) -> str:
    """The message about a cost beyond its limit."""
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
