"""Columns of EndpointSlices."""

from __future__ import annotations

from kubist.api.tables.cells import UNSET, shortened
from kubist.api.tables.columns import AGE, NAME, Column, Table
from kubist.model.meta.object import Object


def _ports(slice: Object) -> str:
    ports = [str(port.get("port", port.get("name", "*"))) for port in slice.get("ports") or ()]
    return shortened(ports) or UNSET


def _addresses(slice: Object) -> str:
    endpoints = slice.get("endpoints") or ()
    addresses = [address for endpoint in endpoints for address in endpoint.get("addresses") or ()]
    return shortened(addresses) or UNSET


TABLES = {
    "EndpointSlice": Table(
        NAME,
        Column("AddressType", "Type of the addresses.", path="addressType"),
        Column("Ports", "Ports of the endpoints.", cell=_ports),
        Column("Endpoints", "Addresses of the endpoints.", cell=_addresses),
        AGE,
    )
}
