"""Columns of the kinds of group policy."""

from __future__ import annotations

from kubist.api.tables.columns import AGE, NAME, Column, Table, number, part
from kubist.model.meta.object import Object


def _min_available(budget: Object) -> str:
    return str(part(budget, "spec").get("minAvailable", "N/A"))


def _max_unavailable(budget: Object) -> str:
    return str(part(budget, "spec").get("maxUnavailable", "N/A"))


TABLES = {
    "PodDisruptionBudget": Table(
        NAME,
        Column("Min Available", "Minimum number of available pods.", cell=_min_available),
        Column("Max Unavailable", "Maximum number of unavailable pods.", cell=_max_unavailable),
        number(
            "Allowed Disruptions", "Number of pods that may be evicted now.", path="status.disruptionsAllowed"
        ),
        AGE,
    )
}
