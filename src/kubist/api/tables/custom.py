"""Table of a custom resource: its name, then the columns of its CRD."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kubist.api.crd.columns import Column as Defined
from kubist.api.crd.columns import cell, value_at
from kubist.api.tables.ages import Cell, since
from kubist.api.tables.columns import AGE, NAME, Column, Table, name_of, table_of
from kubist.model.meta.object import Object

_SCALE = table_of("autoscaling", "Scale")


def _scale(obj: Object) -> list[Cell]:
    """Cells of a scale. An absent spec.replicas gives an empty cell."""
    name, _, available, age = _SCALE.cells(obj)
    return [name, obj["spec"].get("replicas"), available, age]


SCALE = replace(_SCALE, columns=(NAME, *_SCALE.columns[1:-1], replace(AGE, type="date")), cells=_scale)
"""Table of scales of custom resources. Two of its columns are defined differently."""


def table(defined: Sequence[Defined]) -> Table:
    columns = [
        Column(column.name, column.description, column.type, column.format, column.priority)
        for column in defined
    ]

    def cells(obj: Object) -> list[Cell]:
        return [name_of(obj), *(_cell(column, obj) for column in defined)]

    return Table((NAME, *columns), cells)


def _cell(column: Defined, obj: Object) -> Cell:
    """Cell of a column. A date column shows its age."""
    if column.type != "date":
        return cell(column, obj)
    found = value_at(column.path, obj)
    if not isinstance(found, str):
        return None
    try:
        return since(found)
    except ValueError:
        return "<invalid>"
