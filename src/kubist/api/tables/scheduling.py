"""Tables of the kinds of group scheduling.k8s.io."""

from __future__ import annotations

from kubist.api.tables.ages import Cell, age
from kubist.api.tables.columns import AGE, NAME, Column, Table, flag, name_of, number
from kubist.model.meta.object import Object


def _priority_class(obj: Object) -> list[Cell]:
    return [
        name_of(obj),
        obj.get("value", 0),
        obj.get("globalDefault", False),
        age(obj),
        obj.get("preemptionPolicy", ""),
    ]


TABLES = {
    "PriorityClass": Table(
        (
            NAME,
            number("Value", "Priority of pods of the class."),
            flag("Global-Default", "Whether pods without a class belong to it."),
            AGE,
            Column("PreemptionPolicy", "Whether pods of the class may preempt others."),
        ),
        _priority_class,
    )
}
