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

    def _checked(self, name: str, is_valid: Callable[[Any], bool], why: str) -> Any:
        """Value of a field; None without one."""
        value = self.get(name)
        if value is not None and not is_valid(value):
            raise self.error(name, why)
        return value

    def text(self, name: str) -> str:
        return self._checked(name, _is_text, "must be a string") or ""

    def boolean(self, name: str) -> bool:
        return bool(self._checked(name, lambda value: isinstance(value, bool), "must be true or false"))

    def count(self, name: str) -> int | None:
        number: int | None = self._checked(name, _is_count, "must be an integer, 0 or more")
        return number

    def choice(self, name: str, choices: Mapping[str, str]) -> str:
        value = self.text(name)
        if value and value not in choices:
            raise self.error(name, f"unknown value {value!r}: use {', '.join(choices)}")
        return choices.get(value, "")

    def texts(self, name: str) -> list[str]:
        def is_valid(value: Any) -> bool:
            return isinstance(value, list) and all(map(_is_text, value))

        return self._checked(name, is_valid, "must be a list of strings") or []

    def pairs(self, name: str) -> dict[str, str] | None:
        def is_valid(value: Any) -> bool:
            return isinstance(value, dict) and all(map(_is_text, value.values()))

        pairs: dict[str, str] | None = self._checked(name, is_valid, "must be a map of strings")
        return pairs

    def fields(self, name: str) -> Fields | None:
        value = self.get(name)
        return None if value is None else Fields(f"{self.path}.{name}", value)

    def items(self, name: str) -> list[Fields]:
        values = self._checked(name, lambda value: isinstance(value, list), "must be a list") or ()
        return [Fields(f"{self.path}.{name}[{at}]", item) for at, item in enumerate(values)]

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


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62
