"""Table of APIServices."""

from __future__ import annotations

from kubist.api.tables.ages import Cell, age
from kubist.api.tables.columns import AGE, NAME, Column, Table, name_of
from kubist.api.tables.shared import condition, part
from kubist.model.meta.object import Object


def _api_service(obj: Object) -> list[Cell]:
    service = part(obj, "spec").get("service")
    where = f"{service.get('namespace', '')}/{service.get('name', '')}" if service is not None else "Local"
    return [name_of(obj), where, _available(part(obj, "status")), age(obj)]


def _available(status: Object) -> str:
    found = condition(status.get("conditions"), "Available")
    if found is None:
        return "Unknown"
    if found.get("status") != "True" and found.get("reason"):
        return f"{found.get('status', '')} ({found['reason']})"
    return str(found.get("status", ""))


TABLES = {
    "APIService": Table(
        (
            NAME,
            Column("Service", "Service of the extension API server, or Local."),
            Column("Available", "Whether the API is available."),
            AGE,
        ),
        _api_service,
    )
}
