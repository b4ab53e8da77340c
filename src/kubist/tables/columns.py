"""The columns in which people see objects: for each built-in kind what they are called and what is in them.

A module per group names its kinds in `TABLES`. A kind without an entry is shown by name and creation time.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from kubist.resources.resource import GROUP_ROOMS
from kubist.tables.ages import Cell, age

Object = dict[str, Any]


@dataclass(slots=True, frozen=True)
class Column:
    """How one column is announced. Of priority 0 are those that everyone sees; others are for wide output."""

    name: str
    description: str
    type: str = "string"
    format: str = ""
    priority: int = 0

    def definition(self) -> Object:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


def _no_conditions(_obj: Object) -> list[Object]:
    return []


@dataclass(slots=True, frozen=True)
class Table:
    """The columns of a kind and the cells of an object of it, in the stored version."""

    columns: tuple[Column, ...]
    cells: Callable[[Object], list[Cell]]
    conditions: Callable[[Object], list[Object]] = _no_conditions
    """What is to be said about a row as a whole."""
    order: Callable[[Object], Any] | None = None
    """By what a list is sorted, if not by key."""
    empty_rows: bytes = b"[]"
    """What stands for the rows of a list that has none."""


NAME = Column("Name", "Name of the object, unique among those of its kind in its namespace.", format="name")
AGE = Column("Age", "Time since the object was created.")


def name_of(obj: Object) -> str:
    name: str = obj["metadata"].get("name", "")
    return name


def wide(name: str, description: str) -> Column:
    return Column(name, description, priority=1)


def number(name: str, description: str) -> Column:
    return Column(name, description, type="integer")


def flag(name: str, description: str) -> Column:
    return Column(name, description, type="boolean")


def _default_cells(obj: Object) -> list[Cell]:
    return [name_of(obj), obj["metadata"].get("creationTimestamp") or "0001-01-01T00:00:00Z"]


DEFAULT = Table(
    (NAME, Column("Created At", "Time at which the object was created.", type="date")),
    _default_cells,
    empty_rows=b"null",
)
NAME_AND_AGE = Table((NAME, AGE), lambda obj: [name_of(obj), age(obj)])


@cache
def table_of(group: str, kind: str) -> Table:
    """The table of a built-in kind."""
    name = f"kubist.tables.{GROUP_ROOMS.get(group, group.partition('.')[0])}"
    if importlib.util.find_spec(name) is None:
        return DEFAULT
    found: Table = importlib.import_module(name).TABLES.get(kind, DEFAULT)
    return found
