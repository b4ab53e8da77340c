"""Columns of metrics.k8s.io, as metrics-server has them."""

from __future__ import annotations

from kubist.api.tables.ages import Cell
from kubist.api.tables.columns import NAME, Column, Table, name_of
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import ZERO, parse_quantity


def _usage_columns() -> tuple[Column, ...]:
    return (
        NAME,
        Column("cpu", "", format="quantity"),
        Column("memory", "", format="quantity"),
        Column("Window", "", format="duration"),
    )


def _node(obj: Object) -> list[Cell]:
    usage = obj["usage"]
    return [name_of(obj), usage["cpu"], usage["memory"], obj["window"]]


def _pod(obj: Object) -> list[Cell]:
    sums = {"cpu": ZERO, "memory": ZERO}
    for container in obj["containers"]:
        for resource in sums:
            sums[resource] += parse_quantity(container["usage"][resource])
    return [name_of(obj), str(sums["cpu"]), str(sums["memory"]), obj["window"]]


TABLES = {"NodeMetrics": Table(_usage_columns(), _node), "PodMetrics": Table(_usage_columns(), _pod)}
