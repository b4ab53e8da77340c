"""/metrics in Prometheus' text form."""

from __future__ import annotations

import asyncio
import re

from kubist.discovery.metrics import Metrics
from kubist.request import parse
from kubist.resources import Resources


class _Nothing:
    """A registry in which nothing is."""

    class cache:
        collections: dict[str, object] = {}  # noqa: RUF012
        revision = 7

    encrypted = None

    resources = Resources()


def lines(metrics: Metrics) -> list[str]:
    body = asyncio.run(metrics.answer()).body
    assert isinstance(body, bytes)
    return body.decode().splitlines()


def test_requests_are_counted_by_what_was_asked_and_answered() -> None:
    metrics = Metrics(_Nothing, {})  # type: ignore[arg-type]
    info = parse("GET", "/api/v1/namespaces/a/pods/b", {})
    for code in (200, 200, 404):
        metrics.count(info, code, 0.01, False)
    counted = [line for line in lines(metrics) if line.startswith("apiserver_request_total")]
    assert [line.rpartition(" ")[2] for line in counted] == ["2", "1"]
    assert 'code="200"' in counted[0] and 'verb="GET"' in counted[0] and 'scope="resource"' in counted[0]


def test_what_does_not_exist_is_counted_together() -> None:
    metrics = Metrics(_Nothing, {})  # type: ignore[arg-type]
    for number in range(100):
        metrics.count(parse("GET", f"/api/v1/namespaces/a/made-up-{number}/b", {}), 404, 0.01, False)
        metrics.count(parse("GET", f"/apis/made.up/v{number}/things/b", {}), 404, 0.01, False)
        metrics.count(parse("GET", f"/api/v1/namespaces/a/pods/b/up{number}", {}), 404, 0.01, False)
    counted = [line for line in lines(metrics) if line.startswith("apiserver_request_total")]
    assert len(counted) == 1 and counted[0].endswith(" 300")


def test_durations_are_cumulative_up_to_all_of_them() -> None:
    metrics = Metrics(_Nothing, {})  # type: ignore[arg-type]
    info = parse("GET", "/api/v1/pods", {})
    for seconds in (0.001, 0.3, 100.0):
        metrics.count(info, 200, seconds, False)
    buckets = [line for line in lines(metrics) if "_bucket" in line]
    counts = [int(line.rpartition(" ")[2]) for line in buckets]
    assert counts == sorted(counts) and counts[0] == 1 and counts[-1] == 3
    assert 'le="+Inf"' in buckets[-1]


def test_every_line_is_a_type_or_a_sample() -> None:
    metrics = Metrics(_Nothing, {})  # type: ignore[arg-type]
    metrics.count(None, 401, 0.0, True)
    sample = re.compile(r'[a-z_]+(\{([a-z_]+="[^"]*",?)*\})? [0-9.e+-]+')
    assert all(line.startswith("# TYPE ") or sample.fullmatch(line) for line in lines(metrics))
