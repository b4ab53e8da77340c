"""Reader of a Stage's fields: checks types and names, and rejects unknown fields by their path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kubist.cluster.simulation.stages.limits import StageError

Made = TypeVar("Made")


class Fields:
    """Fields of one object in a Stage. `finish` rejects those that nobody read."""

    def __init__(self, path: str, value: Any) -> None:
        if not isinstance(value, dict):
            raise StageError(f"{path}: must be an object")
        self.path = path
        self._values: Mapping[str, Any] = value
        self._read: set[str] = set()

    def error(self, name: str, why: object) -> StageError:
        return StageError(f"{self.path}.{name}: {why}")

    def get(self, name: str) -> Any:
        self._read.add(name)
        return self._values.get(name)

    def text(self, name: str) -> str:
        value = self.get(name)
        if value is not None and not isinstance(value, str):
            raise self.error(name, "must be a string")
        return value or ""

    def boolean(self, name: str) -> bool:
        value = self.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.error(name, "must be true or false")
        return bool(value)

    def count(self, name: str) -> int | None:
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 62:
            raise self.error(name, "must be an integer, 0 or more")
        return value

    def choice(self, name: str, choices: Mapping[str, str]) -> str:
        value = self.text(name)
        if value and value not in choices:
            raise self.error(name, f"unknown value {value!r}: use {', '.join(choices)}")
        return choices.get(value, "")

    def texts(self, name: str) -> list[str]:
        value = self.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(name, "must be a list of strings")
        return value

    def pairs(self, name: str) -> dict[str, str] | None:
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            raise self.error(name, "must be a map of strings")
        return value

    def fields(self, name: str) -> Fields | None:
        value = self.get(name)
        return None if value is None else Fields(f"{self.path}.{name}", value)

    def items(self, name: str) -> list[Fields]:
        value = self.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.error(name, "must be a list")
        return [Fields(f"{self.path}.{name}[{at}]", item) for at, item in enumerate(value)]

    def parse(self, name: str, make: Callable[[str], Made]) -> Made:
        """Result of `make` for a string. Its error gets the path of the field."""
        text = self.text(name)
        try:
            return make(text)
        except StageError as error:
            raise self.error(name, error) from None

    def finish(self) -> None:
        for name in self._values:
            if name not in self._read:
                raise self.error(name, "unknown field")
