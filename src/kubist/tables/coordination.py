"""Tables of the kinds of group coordination.k8s.io."""

from __future__ import annotations

from kubist.model.meta.object import Object
from kubist.tables.ages import Cell, age
from kubist.tables.columns import AGE, NAME, Column, Table, name_of
from kubist.tables.shared import part


def _lease(obj: Object) -> list[Cell]:
    return [name_of(obj), part(obj, "spec").get("holderIdentity", ""), age(obj)]


TABLES = {"Lease": Table((NAME, Column("Holder", "Identity of the holder."), AGE), _lease)}
