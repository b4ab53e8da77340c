"""Tables of the kinds of group policy."""

from __future__ import annotations

from kubist.api.tables.ages import Cell, age
from kubist.api.tables.columns import AGE, NAME, Column, Table, name_of, number
from kubist.api.tables.shared import part
from kubist.model.meta.object import Object


def _disruption_budget(obj: Object) -> list[Cell]:
    spec = part(obj, "spec")
    return [
        name_of(obj),
        str(spec.get("minAvailable", "N/A")),
        str(spec.get("maxUnavailable", "N/A")),
        part(obj, "status").get("disruptionsAllowed", 0),
        age(obj),
    ]


TABLES = {
    "PodDisruptionBudget": Table(
        (
            NAME,
            Column("Min Available", "Minimum number of available pods."),
            Column("Max Unavailable", "Maximum number of unavailable pods."),
            number("Allowed Disruptions", "Number of pods that may be evicted now."),
            AGE,
        ),
        _disruption_budget,
    )
}
