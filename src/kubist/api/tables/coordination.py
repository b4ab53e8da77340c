"""Tables of the kinds of group coordination.k8s.io."""

from __future__ import annotations

from kubist.api.tables.ages import Cell, age
from kubist.api.tables.columns import AGE, NAME, Column, Table, name_of
from kubist.api.tables.shared import part
from kubist.model.meta.object import Object


def _lease(obj: Object) -> list[Cell]:
    return [name_of(obj), part(obj, "spec").get("holderIdentity", ""), age(obj)]


TABLES = {"Lease": Table((NAME, Column("Holder", "Identity of the holder."), AGE), _lease)}
