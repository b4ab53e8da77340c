"""Table of a custom resource: its name, then the columns of its CRD."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from kubist.api.crd.columns import Column as CrdColumn
from kubist.api.crd.columns import cell, value_at
from kubist.api.tables.ages import Cell, since
from kubist.api.tables.columns import AGE, NAME, Column, Table, table_of
from kubist.model.meta.object import Object

_, _DESIRED, _AVAILABLE, _ = table_of("autoscaling", "Scale").columns
SCALE = Table(NAME, replace(_DESIRED, absent=None), _AVAILABLE, replace(AGE, type="date"))
"""Table of scales of custom resources. Name, Desired and Age differ from those of other scales."""


def table(columns: Sequence[CrdColumn]) -> Table:
    return Table(NAME, *map(_column, columns))


def _column(column: CrdColumn) -> Column:
    return Column(
        column.name,
        column.description,
        cell=partial(_cell, column),
        type=column.type,
        format=column.format,
        priority=column.priority,
    )


def _cell(column: CrdColumn, obj: Object) -> Cell:
    """Cell of a column. A date column shows its age."""
    if column.type != "date":
        return cell(column, obj)
    time = value_at(column.path, obj)
    if not isinstance(time, str):
        return None
    try:
        return since(time)
    except ValueError:
        return "<invalid>"
