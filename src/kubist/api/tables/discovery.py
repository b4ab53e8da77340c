"""Tables of the kinds of group discovery.k8s.io."""

from __future__ import annotations

from kubist.api.tables.ages import Cell, age
from kubist.api.tables.columns import AGE, NAME, Column, Table, name_of
from kubist.api.tables.shared import UNSET, shortened
from kubist.model.meta.object import Object


def _endpoint_slice(obj: Object) -> list[Cell]:
    ports = [str(port.get("port", port.get("name", "*"))) for port in obj.get("ports") or ()]
    addresses = [
        address for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ()
    ]
    return [
        name_of(obj),
        obj.get("addressType", ""),
        shortened(ports) or UNSET,
        shortened(addresses) or UNSET,
        age(obj),
    ]


TABLES = {
    "EndpointSlice": Table(
        (
            NAME,
            Column("AddressType", "Type of the addresses."),
            Column("Ports", "Ports of the endpoints."),
            Column("Endpoints", "Addresses of the endpoints."),
            AGE,
        ),
        _endpoint_slice,
    )
}
