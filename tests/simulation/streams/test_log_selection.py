"""Selection of log lines, and the kubelet's messages for containers without a log."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kubist.cluster.simulation.kubelet_api.logs import Log, LogOptions, started
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError

BEGAN = 1_700_000_000 * 10**9
LINES = ["one", "two", "three"]


def pod(**status: Any) -> Object:
    metadata = {"name": "p", "namespace": "default", "creationTimestamp": "2023-11-14T22:13:20Z"}
    return {"metadata": metadata, "spec": {}, "status": {"containerStatuses": [{"name": "c", **status}]}}


def text(lines: list[str], **options: Any) -> str:
    return Log(LogOptions(**options), BEGAN).more(lines).decode()


def test_all_lines_end_with_a_newline() -> None:
    assert text(LINES) == "one\ntwo\nthree\n"
    assert text([]) == ""


@pytest.mark.parametrize(
    ("tail", "expected"), [(0, ""), (1, "three\n"), (2, "two\nthree\n"), (9, "one\ntwo\nthree\n")]
)
def test_tail_takes_the_last_lines(tail: int, expected: str) -> None:
    assert text(LINES, tail=tail) == expected


def test_timestamps_follow_from_the_start_of_the_container() -> None:
    first, second, _ = text(LINES, timestamps=True).splitlines()
    assert first == "2023-11-14T22:13:20.000000000Z one"
    assert second == "2023-11-14T22:13:20.001000000Z two"


def test_since_drops_earlier_lines_and_tail_counts_before_it() -> None:
    assert text(LINES, since=BEGAN + 1_000_000) == "two\nthree\n"
    assert text(LINES, since=BEGAN + 2_000_000, tail=2) == "three\n"
    assert text(LINES, since=BEGAN + 10**9) == ""


def test_limit_counts_bytes_over_all_calls() -> None:
    log = Log(LogOptions(limit=6), BEGAN)
    assert log.more(LINES[:1]) == b"one\n" and not log.is_full
    assert log.more(LINES) == b"tw" and log.is_full


def test_second_call_returns_only_new_lines() -> None:
    log = Log(LogOptions(tail=1), BEGAN)
    assert log.more(LINES) == b"three\n"
    assert log.more(LINES) == b""
    assert log.more([*LINES, "four"]) == b"four\n"


def test_options_are_read_from_the_query() -> None:
    query = {"follow": "true", "tailLines": "5", "sinceSeconds": "10", "limitBytes": "7", "timestamps": "1"}
    options = LogOptions.of(query, 100.0)
    assert options == LogOptions(follow=True, timestamps=True, tail=5, since=90 * 10**9, limit=7)
    assert LogOptions.of({"sinceTime": "1970-01-01T00:00:10Z"}, 0.0).since == 10 * 10**9


TERMINATED = {"terminated": {"exitCode": 1, "startedAt": "2023-11-14T22:13:25Z"}}
RUNNING = {"running": {"startedAt": "2023-11-14T22:13:30Z"}}


@pytest.mark.parametrize(
    ("status", "previous", "offset"),
    [
        ({"state": RUNNING}, False, 10),
        ({"state": TERMINATED}, False, 5),
        ({"state": RUNNING, "lastState": TERMINATED}, True, 5),
        ({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": TERMINATED}, False, 5),
    ],
)
def test_log_starts_with_its_container(status: Object, previous: bool, offset: int) -> None:
    assert started(pod(**status), "c", previous=previous) == BEGAN + offset * 10**9


@pytest.mark.parametrize(
    ("status", "previous", "message"),
    [
        ({"state": RUNNING}, True, 'previous terminated container "c" in pod "p" not found'),
        (
            {"state": {"waiting": {"reason": "ContainerCreating"}}},
            False,
            'container "c" in pod "p" is waiting to start: ContainerCreating',
        ),
        (
            {"state": {"waiting": {"reason": "ErrImagePull"}}},
            False,
            'container "c" in pod "p" is waiting to start: image can\'t be pulled',
        ),
        (
            {"state": {"waiting": {"reason": "ImagePullBackOff"}}},
            False,
            'container "c" in pod "p" is waiting to start: trying and failing to pull image',
        ),
        ({"state": {}}, False, 'container "c" in pod "p" is waiting to start - no logs yet'),
    ],
)
def test_missing_log_has_the_message_of_a_kubelet(status: Object, previous: bool, message: str) -> None:
    with pytest.raises(APIError, match=re.escape(message)) as raised:
        started(pod(**status), "c", previous=previous)
    assert (raised.value.code, raised.value.reason) == (400, "BadRequest")


def test_container_without_a_status_is_not_available() -> None:
    with pytest.raises(APIError, match='container "d" in pod "p" is not available'):
        started(pod(state=RUNNING), "d", previous=False)
