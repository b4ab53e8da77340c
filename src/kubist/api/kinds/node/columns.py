"""Columns of the kinds of group node.k8s.io."""

from __future__ import annotations

from kubist.api.tables.columns import AGE, NAME, Column, Table

TABLES = {
    "RuntimeClass": Table(NAME, Column("Handler", "Handler of the container runtime.", path="handler"), AGE),
}
