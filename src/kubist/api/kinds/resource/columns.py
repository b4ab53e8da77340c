"""Columns of the kinds of group resource.k8s.io."""

from __future__ import annotations

from kubist.api.tables.columns import AGE, NAME, NAME_AND_AGE, Column, Table, part
from kubist.model.meta.object import Object


def _state(claim: Object) -> str:
    is_deleted, status = "deletionTimestamp" in claim["metadata"], part(claim, "status")
    states = ["deleted"] if is_deleted else []
    if status.get("allocation") is not None:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    elif not is_deleted:
        states.append("pending")
    return ",".join(states)


TABLES = {
    "DeviceClass": NAME_AND_AGE,
    "ResourceClaimTemplate": NAME_AND_AGE,
    "ResourceClaim": Table(
        NAME, Column("State", "Whether devices are allocated and reserved.", cell=_state), AGE
    ),
    "ResourceSlice": Table(
        NAME,
        Column("Node", "Node that has the devices.", path="spec.nodeName"),
        Column("Driver", "Driver that offers the devices.", path="spec.driver"),
        Column("Pool", "Pool that the devices belong to.", path="spec.pool.name"),
        AGE,
    ),
}
