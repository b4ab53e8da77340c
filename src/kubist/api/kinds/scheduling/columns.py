"""Columns of the kinds of group scheduling.k8s.io."""

from __future__ import annotations

from kubist.api.tables.columns import AGE, NAME, Column, Table, flag, number

TABLES = {
    "PriorityClass": Table(
        NAME,
        number("Value", "Priority of pods of the class.", path="value"),
        flag("Global-Default", "Whether pods without a class belong to it.", path="globalDefault"),
        AGE,
        Column("PreemptionPolicy", "Whether pods of the class may preempt others.", path="preemptionPolicy"),
    )
}
