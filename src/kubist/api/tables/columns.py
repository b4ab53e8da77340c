"""Vocabulary of tables: columns with their cells, and the table of each built-in kind.

`api/kinds/<group>/columns.py` has the tables of a group, by kind, in `TABLES`. A kind without a table has the columns
Name and Created At.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial, reduce
from typing import Any

from kubist.api.resources.resource import group_module
from kubist.api.tables.ages import Cell, age
from kubist.model.meta.object import Object


@dataclass(slots=True, frozen=True)
class Column:
    """Column of a table, and its cell: what the function `cell` computes, or else the field at `path`."""

    name: str
    description: str
    path: str = ""
    """Path of a field of the object in the storage version, for example `spec.holderIdentity`."""
    cell: Callable[[Any], Cell] | None = None
    """Function for the cell of an object in the storage version."""
    absent: Cell = ""
    """Cell of an object without the field at `path`."""
    of: Callable[[Object], Any] | None = None
    """Function for a value that `cell` takes instead of the object. Columns with the same function share the value."""
    type: str = "string"
    format: str = ""
    priority: int = 0
    """0: always shown. 1: shown in wide output only."""

    def definition(self) -> Object:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


wide = partial(Column, priority=1)
number = partial(Column, type="integer", absent=0)
flag = partial(Column, type="boolean", absent=False)


def _no_conditions(_obj: Object) -> list[Object]:
    return []


class Table:
    """Columns of a kind.

    `conditions` computes the conditions of a row. `order` is the sort key of lists, by default the storage key.
    `empty_rows` is the JSON for the rows of an empty list. `extra` computes a last cell, which has no column.
    """

    def __init__(
        self,
        *columns: Column,
        conditions: Callable[[Object], list[Object]] = _no_conditions,
        order: Callable[[Object], Any] | None = None,
        empty_rows: bytes = b"[]",
        extra: Callable[[Object], Cell] | None = None,
    ) -> None:
        self.columns = columns
        self.conditions = conditions
        self.order = order
        self.empty_rows = empty_rows
        self._extra = extra

    @cached_property
    def cells(self) -> Callable[[Object], list[Cell]]:
        """Function for the cells of an object in the storage version. Made for the first object."""
        extra = () if self._extra is None else (Column("", "", cell=self._extra),)
        return _compiled((*self.columns, *extra))


def _compiled(columns: Sequence[Column]) -> Callable[[Object], list[Cell]]:
    """Function for the cells of a row. A loop over functions would take twice the time."""
    functions = dict.fromkeys(column.of for column in columns if column.of is not None)
    values = {function: f"value{index}" for index, function in enumerate(functions)}
    namespace: dict[str, Any] = {"empty": {}, "functions": tuple(functions)}
    cells = []
    for index, column in enumerate(columns):
        namespace[f"cell{index}"] = column.cell or column.absent
        if column.cell is not None:
            cells.append(f"cell{index}({values[column.of] if column.of is not None else 'obj'})")
            continue
        *structs, name = column.path.split(".")
        struct = reduce(lambda text, name: f"({text}.get({name!r}) or empty)", structs, "obj")
        cells.append(f"{struct}.get({name!r}, cell{index})")
    lines = [f"{value} = functions[{index}](obj)" for index, value in enumerate(values.values())]
    exec("\n    ".join(["def row(obj):", *lines, f"return [{', '.join(cells)}]"]), namespace)
    row: Callable[[Object], list[Cell]] = namespace["row"]
    return row


def part(obj: Object, *path: str) -> Any:
    """Struct or list at a path. An empty struct if it does not exist."""
    for name in path:
        obj = obj.get(name) or {}
    return obj


def name_of(obj: Object) -> str:
    name: str = obj["metadata"].get("name", "")
    return name


NAME = Column(
    "Name",
    "Name of the object, unique among those of its kind in its namespace.",
    path="metadata.name",
    format="name",
)
AGE = Column("Age", "Time since the object was created.", cell=age)
NAME_AND_AGE = Table(NAME, AGE)
DEFAULT = Table(
    NAME,
    Column(
        "Created At",
        "Time at which the object was created.",
        cell=lambda obj: obj["metadata"].get("creationTimestamp") or "0001-01-01T00:00:00Z",
        type="date",
    ),
    empty_rows=b"null",
)


@cache
def table_of(group: str, kind: str) -> Table:
    """Table of a built-in kind."""
    module = group_module(group, "columns")
    table: Table = DEFAULT if module is None else module.TABLES.get(kind, DEFAULT)
    return table
