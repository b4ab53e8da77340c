"""Columns of the kinds of group coordination.k8s.io."""

from __future__ import annotations

from kubist.api.tables.columns import AGE, NAME, Column, Table

TABLES = {
    "Lease": Table(NAME, Column("Holder", "Identity of the holder.", path="spec.holderIdentity"), AGE),
}
