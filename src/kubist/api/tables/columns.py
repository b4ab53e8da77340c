"""Columns and cells of each built-in kind.

A module per group lists its kinds in `TABLES`. A kind without an entry has the columns Name and Created At.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from kubist.api.resources.resource import GROUP_FOLDERS
from kubist.api.tables.ages import Cell, age
from kubist.model.meta.object import Object


@dataclass(slots=True, frozen=True)
class Column:
    """Column definition. Columns of priority 0 are always shown, others only in wide output."""

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
    """Columns of a kind, and the function for the cells of an object in the storage version."""

    columns: tuple[Column, ...]
    cells: Callable[[Object], list[Cell]]
    conditions: Callable[[Object], list[Object]] = _no_conditions
    """Function for the conditions of a row."""
    order: Callable[[Object], Any] | None = None
    """Sort key of a list. None: sorted by storage key."""
    empty_rows: bytes = b"[]"
    """JSON for the rows of an empty list."""


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
    """Table of a built-in kind."""
    name = f"kubist.api.tables.{GROUP_FOLDERS.get(group, group.partition('.')[0])}"
    if importlib.util.find_spec(name) is None:
        return DEFAULT
    found: Table = importlib.import_module(name).TABLES.get(kind, DEFAULT)
    return found
