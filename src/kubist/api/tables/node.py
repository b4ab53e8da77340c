"""Tables of the kinds of group node.k8s.io."""

from __future__ import annotations

from kubist.api.tables.ages import Cell, age
from kubist.api.tables.columns import AGE, NAME, Column, Table, name_of
from kubist.model.meta.object import Object


def _runtime_class(obj: Object) -> list[Cell]:
    return [name_of(obj), obj.get("handler", ""), age(obj)]


TABLES = {
    "RuntimeClass": Table(
        (NAME, Column("Handler", "Handler of the container runtime."), AGE),
        _runtime_class,
    )
}
