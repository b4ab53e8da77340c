"""Tables of FlowSchemas and PriorityLevelConfigurations."""

from __future__ import annotations

from kubist.api.tables.ages import Cell, age
from kubist.api.tables.columns import AGE, NAME, Column, Table, name_of
from kubist.api.tables.shared import NONE, condition, part
from kubist.model.meta.object import Object


def _flow_schema(obj: Object) -> list[Cell]:
    spec = part(obj, "spec")
    method = spec.get("distinguisherMethod")
    dangling = condition(part(obj, "status").get("conditions"), "Dangling")
    return [
        name_of(obj),
        part(spec, "priorityLevelConfiguration").get("name", ""),
        spec.get("matchingPrecedence", 0),
        method.get("type", "") if method is not None else NONE,
        age(obj),
        dangling.get("status", "") if dangling is not None else "?",
    ]


def _precedence(obj: Object) -> tuple[int, str]:
    return part(obj, "spec").get("matchingPrecedence", 0), name_of(obj)


def _priority_level(obj: Object) -> list[Cell]:
    spec = part(obj, "spec")
    limited = spec.get("limited")
    shares: Cell = NONE
    queues: list[Cell] = [NONE] * 3
    if limited is not None:
        shares = limited.get("nominalConcurrencyShares", 0)
        queuing = part(limited, "limitResponse").get("queuing")
        if queuing is not None:
            queues = [queuing.get(name, 0) for name in ("queues", "handSize", "queueLengthLimit")]
    return [name_of(obj), spec.get("type", ""), shares, *queues, age(obj)]


TABLES = {
    "FlowSchema": Table(
        (
            NAME,
            Column("PriorityLevel", "Priority level of the requests that match."),
            Column("MatchingPrecedence", "Schemas of lower numbers are tried first."),
            Column("DistinguisherMethod", "Method that groups matching requests into flows."),
            AGE,
            Column("MissingPL", "Whether that priority level is missing."),
        ),
        _flow_schema,
        order=_precedence,
    ),
    "PriorityLevelConfiguration": Table(
        (
            NAME,
            Column("Type", "Whether requests of the level are limited."),
            Column(
                "NominalConcurrencyShares", "Share of the level in the concurrent requests of the server."
            ),
            Column("Queues", "Number of queues."),
            Column("HandSize", "Number of queues from which a request gets one."),
            Column("QueueLengthLimit", "Maximum number of requests in a queue."),
            AGE,
        ),
        _priority_level,
    ),
}
