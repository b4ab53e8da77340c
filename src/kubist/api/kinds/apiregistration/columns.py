"""Columns of APIServices."""

from __future__ import annotations

from kubist.api.tables.cells import condition
from kubist.api.tables.columns import AGE, NAME, Column, Table, part
from kubist.model.meta.object import Object


def _service(obj: Object) -> str:
    service = part(obj, "spec").get("service")
    return f"{service.get('namespace', '')}/{service.get('name', '')}" if service is not None else "Local"


def _available(obj: Object) -> str:
    available = condition(part(obj, "status").get("conditions"), "Available")
    if available is None:
        return "Unknown"
    if available.get("status") != "True" and available.get("reason"):
        return f"{available.get('status', '')} ({available['reason']})"
    return str(available.get("status", ""))


TABLES = {
    "APIService": Table(
        NAME,
        Column("Service", "Service of the extension API server, or Local.", cell=_service),
        Column("Available", "Whether the API is available.", cell=_available),
        AGE,
    )
}
