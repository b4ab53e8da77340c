from typing import Any

import pytest

GOOD = {
    "metadata": {"name": "e", "namespace": "d"},
    "eventTime": "2024-01-01T00:00:00.000000Z",
    "reportingController": "example.com/c",
    "reportingInstance": "i",
    "action": "a",
    "reason": "r",
    "type": "Normal",
    "regarding": {"namespace": "d"},
    "note": "n",
}


@pytest.fixture
def events(kind_of: Any) -> Any:
    return kind_of("events.k8s.io/v1", "Event")


def stored(events: Any, **changes: Any) -> dict[str, Any]:
    obj: dict[str, Any] = events.strategy.convert(events.decode(GOOD | changes), "v1")
    return obj


def fields(errors: list[Any]) -> list[str]:
    return [error.field for error in errors]


def test_conversion_to_core_round_trips(events: Any) -> None:
    obj = stored(events)
    assert (obj["apiVersion"], obj["message"], obj["reportingComponent"]) == ("v1", "n", "example.com/c")
    assert (obj["source"], obj["firstTimestamp"]) == ({}, None)
    assert events.strategy.convert(obj, "events.k8s.io/v1") == events.decode(GOOD)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"type": "Odd"}, ["type"]),
        ({"eventTime": None}, ["eventTime"]),
        ({"deprecatedCount": 2, "deprecatedSource": {"host": "h"}}, ["count", "source"]),
        ({"series": {"count": 1, "lastObservedTime": None}}, ["series.count", "series.lastObservedTime"]),
        ({"reportingController": "a b"}, ["reportingController"]),
        ({"reason": "x" * 129, "note": "x" * 1025}, ["reason", "message"]),
    ],
)
def test_invalid_event_is_rejected(events: Any, changes: dict[str, Any], expected: list[str]) -> None:
    assert fields(events.strategy.validate(events.context, stored(events, **changes), None)) == expected


def test_all_fields_but_series_are_immutable(events: Any) -> None:
    old = stored(events)
    series = {"count": 2, "lastObservedTime": "2024-01-01T00:00:00.000000Z"}
    assert events.strategy.validate(events.context, stored(events, series=series), old) == []
    changed = stored(events, note="other", regarding={"namespace": "d", "name": "x"})
    assert fields(events.strategy.validate(events.context, changed, old)) == [
        "involvedObject",
        "message",
    ]
