"""CEL variables of an admission policy: named expressions that later expressions see as `variables.<name>`.

A policy may have thousands of variables, and each sees the variables before it. Therefore all prefixes of the list
share one store and differ only in their length.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from kubist.model.cel import Type

Flags = tuple[bool, bool]
"""Key of the variables' types: whether `params` is declared, and whether `authorizer` is declared."""


class _Store:
    """Variables in the order of the policy, with the types found so far by environment flags."""

    def __init__(self) -> None:
        self.definitions: list[tuple[str, str]] = []
        self.positions: dict[str, list[int]] = {}
        self.types: dict[Flags, list[Type]] = {}

    def add(self, name: str, expression: str) -> None:
        self.positions.setdefault(name, []).append(len(self.definitions))
        self.definitions.append((name, expression))


class Variables:
    """The first `count` variables of a store."""

    __slots__ = ("_count", "_store")

    def __init__(self, store: _Store | None = None, count: int = 0) -> None:
        self._store = store or _Store()
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Variables) or self._count != other._count:
            return False
        return not self._count or self._store is other._store

    def __hash__(self) -> int:
        return hash((id(self._store), self._count)) if self._count else 0

    def defining(self, name: str, expression: str) -> Variables:
        store = self._store
        if not self._count or self._count < len(store.definitions):
            store = _Store()
            for definition in self._store.definitions[: self._count]:
                store.add(*definition)
        store.add(name, expression)
        return Variables(store, self._count + 1)

    def types(self, flags: Flags, type_of: Callable[[str, Variables], Type]) -> VariableTypes:
        """Types by variable name. `type_of` returns the type of an expression that sees the given variables."""
        return VariableTypes(self, flags, type_of)

    def find(self, name: str, flags: Flags, type_of: Callable[[str, Variables], Type]) -> Type | None:
        store = self._store
        positions = store.positions.get(name, [])
        found = bisect_left(positions, self._count) - 1
        if found < 0:
            return None
        known = store.types.setdefault(flags, [])
        while len(known) <= positions[found]:  # In order: each type needs only earlier ones.
            known.append(type_of(store.definitions[len(known)][1], Variables(store, len(known))))
        return known[positions[found]]


class VariableTypes(dict[str, Type]):
    """Fields of `variables`. The type of a field is found when an expression first names it."""

    def __init__(self, variables: Variables, flags: Flags, type_of: Callable[[str, Variables], Type]) -> None:
        super().__init__()
        self._variables = variables
        self._flags = flags
        self._type_of = type_of

    def __missing__(self, name: str) -> Type:
        found = self._variables.find(name, self._flags, self._type_of)
        if found is None:
            raise KeyError(name)
        return found

    def get(self, name: str, default: Type | None = None) -> Type | None:  # type: ignore[override]
        found = self._variables.find(name, self._flags, self._type_of)
        return default if found is None else found


NO_VARIABLES = Variables()
