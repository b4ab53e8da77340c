"""Columns of FlowSchemas and PriorityLevelConfigurations."""

from __future__ import annotations

from collections.abc import Callable

from kubist.api.tables.ages import Cell
from kubist.api.tables.cells import NONE, condition
from kubist.api.tables.columns import AGE, NAME, Column, Table, name_of, part
from kubist.model.meta.object import Object


def _distinguisher(schema: Object) -> str:
    method = part(schema, "spec").get("distinguisherMethod")
    return method.get("type", "") if method is not None else NONE


def _dangling(schema: Object) -> str:
    dangling = condition(part(schema, "status").get("conditions"), "Dangling")
    return dangling.get("status", "") if dangling is not None else "?"


def _precedence(schema: Object) -> tuple[int, str]:
    return part(schema, "spec").get("matchingPrecedence", 0), name_of(schema)


def _limit(name: str, *path: str) -> Callable[[Object], Cell]:
    """Function for a number of a limited priority level. Other levels lack the struct at `path`."""

    def cell(level: Object) -> Cell:
        struct = part(level, "spec", *path[:-1]).get(path[-1])
        return struct.get(name, 0) if struct is not None else NONE

    return cell


_QUEUING = ("limited", "limitResponse", "queuing")
TABLES = {
    "FlowSchema": Table(
        NAME,
        Column(
            "PriorityLevel",
            "Priority level of the requests that match.",
            path="spec.priorityLevelConfiguration.name",
        ),
        Column(
            "MatchingPrecedence",
            "Schemas of lower numbers are tried first.",
            path="spec.matchingPrecedence",
            absent=0,
        ),
        Column(
            "DistinguisherMethod", "Method that groups matching requests into flows.", cell=_distinguisher
        ),
        AGE,
        Column("MissingPL", "Whether that priority level is missing.", cell=_dangling),
        order=_precedence,
    ),
    "PriorityLevelConfiguration": Table(
        NAME,
        Column("Type", "Whether requests of the level are limited.", path="spec.type"),
        Column(
            "NominalConcurrencyShares",
            "Share of the level in the concurrent requests of the server.",
            cell=_limit("nominalConcurrencyShares", "limited"),
        ),
        Column("Queues", "Number of queues.", cell=_limit("queues", *_QUEUING)),
        Column(
            "HandSize", "Number of queues from which a request gets one.", cell=_limit("handSize", *_QUEUING)
        ),
        Column(
            "QueueLengthLimit",
            "Maximum number of requests in a queue.",
            cell=_limit("queueLengthLimit", *_QUEUING),
        ),
        AGE,
    ),
}
