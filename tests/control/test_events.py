"""Event recorder: repetitions are counted, similar Events are combined, and floods are cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kubist.base.clock import Clock
from kubist.cluster.control.events import BURST, COMBINED, REFILL_SECONDS, SIMILAR, EventRecorder
from kubist.model.meta.object import Object
from tests.live import Live
from tests.waiting import wait_for


class SetClock(Clock):
    """Clock that a test sets."""

    time = 1_700_000_000.5

    def now(self) -> float:
        return self.time


class Recorder:
    """Recorder of a running server, used from the test's thread."""

    def __init__(self, live: Live, namespace: str) -> None:
        self.live, self.clock, self.path = live, SetClock(), f"/api/v1/namespaces/{namespace}"
        made = live.client.post(f"{self.path}/configmaps", {"metadata": {"name": "web"}})
        self.about: Object = {"apiVersion": "v1", "kind": "ConfigMap", **made}
        self.recorder = EventRecorder(live.server.api.cluster, self.clock, "tester", "a")

    def emit(self, message: str, reason: str = "Tested", type_: str = "Normal", **options: Any) -> None:
        async def run() -> None:
            self.recorder.emit(self.about, type_, reason, message, **options)

        self.live.run(run())

    def events(self) -> list[Object]:
        found: list[Object] = self.live.client.get(f"{self.path}/events")["items"]
        return sorted(found, key=lambda event: str(event["metadata"]["name"]))

    def counts(self) -> list[int]:
        return [event["count"] for event in self.events()]


@pytest.fixture
def recorder(shared_live: Live, namespace: str) -> Iterator[Recorder]:
    made = Recorder(shared_live, namespace)
    yield made
    shared_live.run(made.recorder.close())


def test_event_names_object_source_and_time(recorder: Recorder) -> None:
    recorder.emit("it works", field_path="data{a}")
    wait_for(recorder.events)
    [event] = recorder.events()
    metadata = recorder.about["metadata"]
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": metadata["namespace"],
        "name": "web",
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
        "fieldPath": "data{a}",
    }
    assert event["source"] == {"component": "tester", "host": "a"}
    assert (event["reportingComponent"], event["reportingInstance"]) == ("tester", "a")
    assert (event["type"], event["reason"], event["message"]) == ("Normal", "Tested", "it works")
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2023-11-14T22:13:20Z"
    assert event["count"] == 1 and event["metadata"]["name"].startswith("web.")


def test_repetition_raises_the_count(recorder: Recorder) -> None:
    recorder.emit("again")
    wait_for(recorder.events)
    recorder.clock.time += 60
    recorder.emit("again")
    recorder.emit("again")
    wait_for(lambda: recorder.counts() == [3])
    [event] = recorder.events()
    assert event["firstTimestamp"] == "2023-11-14T22:13:20Z"
    assert event["lastTimestamp"] == "2023-11-14T22:14:20Z"


def test_deleted_event_is_written_again(recorder: Recorder) -> None:
    recorder.emit("again")
    wait_for(recorder.events)
    recorder.live.client.delete(f"{recorder.path}/events/{recorder.events()[0]['metadata']['name']}")
    recorder.emit("again")
    wait_for(lambda: recorder.counts() == [2])


def test_other_message_reason_type_and_host_are_other_events(recorder: Recorder) -> None:
    recorder.emit("one")
    recorder.emit("two")
    recorder.emit("one", reason="Other")
    recorder.emit("one", type_="Warning")
    recorder.emit("one", host="b")
    wait_for(lambda: recorder.counts() == [1] * 5)


def test_many_messages_of_one_reason_share_one_event(recorder: Recorder) -> None:
    for number in range(SIMILAR + 3):
        recorder.emit(f"message {number}")
    wait_for(lambda: sorted(recorder.counts()) == [1] * SIMILAR + [3])
    [combined] = [event for event in recorder.events() if event["count"] == 3]
    assert combined["message"] == f"{COMBINED}message {SIMILAR + 2}"


def test_object_with_too_many_events_gets_one_every_five_minutes(recorder: Recorder) -> None:
    for number in range(BURST + 5):
        recorder.emit("flood", reason=f"R{number}")
    wait_for(lambda: len(recorder.events()) == BURST)
    recorder.clock.time += REFILL_SECONDS
    recorder.emit("flood", reason="Late")
    recorder.emit("flood", reason="Later")
    wait_for(lambda: len(recorder.events()) == BURST + 1)
    assert {event["reason"] for event in recorder.events()} == {f"R{n}" for n in range(BURST)} | {"Late"}


def test_event_with_an_action_has_a_series(recorder: Recorder) -> None:
    recorder.emit("bound", action="Binding")
    wait_for(recorder.events)
    [event] = recorder.events()
    assert event["eventTime"] == "2023-11-14T22:13:20.500000Z"
    assert event["action"] == "Binding" and event["reportingInstance"] == "tester-a"
    assert "count" not in event and event["firstTimestamp"] is None
    recorder.emit("bound", action="Binding")
    wait_for(lambda: recorder.events()[0].get("series"))
    assert recorder.events()[0]["series"] == {"count": 2, "lastObservedTime": "2023-11-14T22:13:20.500000Z"}


def test_event_in_a_deleted_namespace_is_dropped(recorder: Recorder) -> None:
    recorder.about["metadata"]["namespace"] = "missing"
    recorder.emit("nobody reads this")
    recorder.about["metadata"]["namespace"] = recorder.path.rpartition("/")[2]
    recorder.emit("somebody reads this")
    wait_for(recorder.events)
    assert [event["message"] for event in recorder.events()] == ["somebody reads this"]
