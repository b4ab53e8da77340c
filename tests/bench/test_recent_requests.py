"""Recent requests and open watches over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.testbench.recording import capture
from kubist.testbench.recording.recording import Limits
from kubist.testing import Cluster
from tests.bench.fault_clients import MAPS, ask, config_map, watching
from tests.bench.recording_clients import RECORDINGS, following, lines, until
from tests.live import Client, Live, Pki
from tests.waiting import wait_for


def test_recent_requests(cluster: Cluster) -> None:
    bench = cluster.inner.bench
    assert bench is not None
    lines(cluster, "/kubist/v1/requests")
    cluster.load(config_map("a"))
    ask(cluster, "GET", f"{MAPS}/none")
    apply, missing = lines(cluster, "/kubist/v1/requests")[-2:]
    assert apply["verb"] == "patch" and apply["patch"]["kind"] == "ConfigMap"
    assert "responseObject" not in apply and "after" not in apply
    assert missing["reason"] == "NotFound"
    with following(cluster, f"/kubist/v1/requests?watch&after={missing['id']}") as found:
        cluster.list("cm")
        assert next(found)["verb"] == "list"


def test_recent_requests_are_bounded(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = cluster.inner.bench
    assert bench is not None
    monkeypatch.setattr(capture, "RECENT", Limits(entries=3, size=10_000))
    cluster.loop.call_soon_threadsafe(bench.recorder.clear)  # type: ignore[union-attr]
    lines(cluster, "/kubist/v1/requests")
    for number in range(5):
        cluster.load(config_map(f"c{number}"))
    found = lines(cluster, "/kubist/v1/requests")
    assert [line["name"] for line in found] == ["c2", "c3", "c4"]


def test_long_request_lines_and_headers_count(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred requests with heads of 200 KB would take 20 MB."""
    bench = cluster.inner.bench
    assert bench is not None
    cluster.loop.call_soon_threadsafe(bench.recorder.clear)  # type: ignore[union-attr]
    lines(cluster, "/kubist/v1/requests")
    for number in range(100):
        ask(cluster, "GET", f"{MAPS}?x={number}{'y' * 100_000}", User_Agent="a" * 100_000)
    assert len(lines(cluster, "/kubist/v1/requests")) < 50
    assert bench.recorder._recent is not None
    kept = bench.recorder._recent.entries
    assert 10 < len(kept) < 50
    assert sum(len(each.ctx.request.query) for each in kept) < capture.RECENT.size
    assert lines(cluster, "/kubist/v1/requests")[-1]["userAgent"] == "a" * 100_000


def test_recent_requests_are_forgotten_when_nobody_asks(
    server_pki: Pki, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture, "RECENT_SECONDS", 0.05)
    with Live(server_pki, test_bench=True) as live:
        bench = live.server.bench
        assert bench is not None
        live.client.ask("GET", "/kubist/v1/requests")
        wait_for(lambda: not bench.recorder)
        http = live.server._http
        assert http is not None and "Recorder" not in repr(http._application)


def test_recent_requests_of_a_test_are_kept(cluster: Cluster) -> None:
    """The report of a failed test needs them, also after a client asked for them."""
    bench = cluster.inner.bench
    assert bench is not None
    lines(cluster, "/kubist/v1/requests")
    assert bench.recorder._expiry is None
    cluster.list("cm")
    assert lines(cluster, "/kubist/v1/requests")[-1]["verb"] == "list"


def test_open_watches(cluster: Cluster) -> None:
    def of_agent() -> list[dict[str, Any]]:
        items = cluster.request("GET", "/kubist/v1/watchers")["items"]
        return [item for item in items if item["userAgent"] == "me/1"]

    cluster.load(config_map("a"))
    with watching(cluster, **{"User-Agent": "me/1"}) as watch:
        until(watch, "a")
        cluster.load(config_map("b"))
        until(watch, "b")
        [item] = of_agent()
        version = cluster.get("cm/b")["metadata"]["resourceVersion"]
    assert item["user"] == "admin" and item["resource"] == "configmaps" and item["namespace"] == "default"
    assert int(item["position"]) >= int(version)
    assert item["sent"] == len(cluster.list("cm")) and item["buffered"] == 0
    wait_for(lambda: not of_agent())


def test_access_needs_a_rule(server_pki: Pki) -> None:
    with Live(server_pki, test_bench=True, authorization_mode=("RBAC",)) as live:
        user = Client(live.server.port, server_pki, "dev-token")
        for method, path in (
            ("POST", RECORDINGS),
            ("GET", "/kubist/v1/requests"),
            ("GET", "/kubist/v1/watchers"),
        ):
            assert user.ask(method, path).status == 403
        user.close()
