"""Columns of metrics.k8s.io, as metrics-server has them."""

from __future__ import annotations

from collections.abc import Callable

from kubist.api.tables.columns import NAME, Column, Table
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import ZERO, parse_quantity


def _of_containers(resource: str) -> Callable[[Object], str]:
    """Function for the usage of a pod: the sum of its containers."""
    return lambda pod: str(
        sum((parse_quantity(container["usage"][resource]) for container in pod["containers"]), ZERO)
    )


_WINDOW = Column("Window", "", path="window", format="duration")
TABLES = {
    "NodeMetrics": Table(
        NAME,
        Column("cpu", "", path="usage.cpu", format="quantity"),
        Column("memory", "", path="usage.memory", format="quantity"),
        _WINDOW,
    ),
    "PodMetrics": Table(
        NAME,
        Column("cpu", "", cell=_of_containers("cpu"), format="quantity"),
        Column("memory", "", cell=_of_containers("memory"), format="quantity"),
        _WINDOW,
    ),
}
