"""Tables of the kinds of group resource.k8s.io."""

from __future__ import annotations

from kubist.api.tables.ages import Cell, age
from kubist.api.tables.columns import AGE, NAME, NAME_AND_AGE, Column, Table, name_of
from kubist.api.tables.shared import part
from kubist.model.meta.object import Object


def _claim(obj: Object) -> list[Cell]:
    deleted, status = "deletionTimestamp" in obj["metadata"], part(obj, "status")
    states = ["deleted"] if deleted else []
    if status.get("allocation") is not None:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    elif not deleted:
        states.append("pending")
    return [name_of(obj), ",".join(states), age(obj)]


def _slice(obj: Object) -> list[Cell]:
    spec = part(obj, "spec")
    return [
        name_of(obj),
        spec.get("nodeName", ""),
        spec.get("driver", ""),
        part(spec, "pool").get("name", ""),
        age(obj),
    ]


TABLES = {
    "DeviceClass": NAME_AND_AGE,
    "ResourceClaimTemplate": NAME_AND_AGE,
    "ResourceClaim": Table(
        (NAME, Column("State", "Whether devices are allocated and reserved."), AGE), _claim
    ),
    "ResourceSlice": Table(
        (
            NAME,
            Column("Node", "Node that has the devices."),
            Column("Driver", "Driver that offers the devices."),
            Column("Pool", "Pool that the devices belong to."),
            AGE,
        ),
        _slice,
    ),
}
