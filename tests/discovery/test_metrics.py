"""/metrics in Prometheus' text format."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from kubist.api.config import Config
from kubist.api.discovery import metrics as metrics_module
from kubist.api.discovery.counters import Counters, Requests
from kubist.api.discovery.metrics import Metrics, content_type
from kubist.api.request import parse
from kubist.api.resources.resource import Resources
from tests.live import Live, Pki, configmap
from tests.waiting import wait_for


class _Nothing:
    """Registry without resources."""

    class cache:
        collections: dict[str, object] = {}  # noqa: RUF012
        revision = 7

    encrypted = None
    config = Config()
    resources = Resources()


def lines(metrics: Metrics) -> list[str]:
    body = asyncio.run(metrics.answer()).body
    assert isinstance(body, bytes)
    return body.decode().splitlines()


def test_requests_are_counted_by_resource_and_code() -> None:
    metrics = Metrics(_Nothing, {})  # type: ignore[arg-type]
    info = parse("GET", "/api/v1/namespaces/a/pods/b", {})
    for code in (200, 200, 404):
        metrics.count(info, code, 0.01, False)
    counted = [line for line in lines(metrics) if line.startswith("apiserver_request_total")]
    assert [line.rpartition(" ")[2] for line in counted] == ["2", "1"]
    assert 'code="200"' in counted[0] and 'verb="GET"' in counted[0] and 'scope="resource"' in counted[0]


def test_unknown_resources_share_one_label_set() -> None:
    metrics = Metrics(_Nothing, {})  # type: ignore[arg-type]
    for number in range(100):
        metrics.count(parse("GET", f"/api/v1/namespaces/a/made-up-{number}/b", {}), 404, 0.01, False)
        metrics.count(parse("GET", f"/apis/made.up/v{number}/things/b", {}), 404, 0.01, False)
        metrics.count(parse("GET", f"/api/v1/namespaces/a/pods/b/up{number}", {}), 404, 0.01, False)
    counted = [line for line in lines(metrics) if line.startswith("apiserver_request_total")]
    assert len(counted) == 1 and counted[0].endswith(" 300")


def test_unknown_methods_share_one_label() -> None:
    metrics = Metrics(_Nothing, {})  # type: ignore[arg-type]
    for path in ("/version", "/api/v1/pods", "/apis/made.up/v1/things"):
        for number in range(200):
            metrics.count(parse(f"BREW{number}", path, {}), 401, 0.01, False)
    counted = [line for line in lines(metrics) if line.startswith("apiserver_request_total")]
    assert len(counted) == 3 and sum(int(line.rpartition(" ")[2]) for line in counted) == 600
    assert all('verb="other"' in line for line in counted)


@pytest.mark.parametrize(
    "path",
    [
        "/made-up-{}",
        "/api/v{}/pods",
        "/apis/made-up-{}/v1/pods",
        "/api/v1/made-up-{}",
        "/api/v1/namespaces/made-up-{}",
        "/api/v1/namespaces/a/pods/b/made-up-{}",
        "/api/v1/watch/made-up-{}",
        "/api/v1/proxy/made-up-{}",
        "/api/v1/pods?fieldSelector=made-up-{}",
    ],
)
def test_path_parts_do_not_become_labels(path: str) -> None:
    metrics = Metrics(_Nothing, {})  # type: ignore[arg-type]
    before = len(lines(metrics))
    for number in range(100):
        line, _, query = path.format(number).partition("?")
        metrics.count(parse("GET", line, dict([query.split("=")]) if query else {}), 403, 0.01, False)
    text = "\n".join(lines(metrics))
    assert "made-up" not in text and len(text.splitlines()) < before + 60


def test_label_sets_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_module, "_LABEL_SETS", 50)
    metrics = Metrics(_Nothing, {})  # type: ignore[arg-type]
    monkeypatch.setattr(metrics, "_served", lambda info: True)
    for number in range(200):
        metrics.count(parse("GET", f"/apis/example.com/v1/kinds{number}", {}), 200, 0.01, False)
    counted = [line for line in lines(metrics) if line.startswith("apiserver_request_total")]
    assert len(counted) == 51
    assert sum(int(line.rpartition(" ")[2]) for line in counted) == 200


def test_duration_buckets_are_cumulative() -> None:
    metrics = Metrics(_Nothing, {})  # type: ignore[arg-type]
    info = parse("GET", "/api/v1/pods", {})
    for seconds in (0.001, 0.3, 100.0):
        metrics.count(info, 200, seconds, False)
    buckets = [line for line in lines(metrics) if "_bucket" in line]
    counts = [int(line.rpartition(" ")[2]) for line in buckets]
    assert counts == sorted(counts) and counts[0] == 1 and counts[-1] == 3
    assert 'le="+Inf"' in buckets[-1]


def test_every_line_is_a_comment_or_a_sample() -> None:
    metrics = Metrics(_Nothing, {})  # type: ignore[arg-type]
    metrics.count(None, 401, 0.0, True)
    sample = re.compile(r'[a-z_]+(\{([a-z_]+="[^"]*",?)*\})? [0-9.e+-]+')
    found = lines(metrics)
    assert all(line.startswith(("# TYPE ", "# HELP ")) or sample.fullmatch(line) for line in found)
    helped = [line.split()[2] for line in found if line.startswith("# HELP ")]
    typed = [line.split()[2] for line in found if line.startswith("# TYPE ")]
    assert helped == typed and len(set(helped)) == len(helped)


@pytest.mark.parametrize(
    ("accept", "escaping"),
    [
        ("", "underscores"),
        ("*/*", "underscores"),
        ("text/plain;version=0.0.4;escaping=values", "values"),
        ("application/openmetrics-text;version=0.0.1;escaping=dots", "dots"),
        ("text/plain;version=1.0.0;escaping=allow-utf-8,text/plain;escaping=odd", "allow-utf-8"),
    ],
)
def test_content_type_names_the_escaping(accept: str, escaping: str) -> None:
    expected = f"text/plain; version=0.0.4; charset=utf-8; escaping={escaping}"
    assert content_type(accept) == expected.encode()


@pytest.mark.parametrize(
    ("method", "path", "applied", "verb", "scope"),
    [
        ("POST", "/api/v1/namespaces/a/pods", False, "POST", "resource"),
        ("PUT", "/api/v1/namespaces/a/pods/b", False, "PUT", "resource"),
        ("PATCH", "/api/v1/namespaces/a/pods/b", False, "PATCH", "resource"),
        ("PATCH", "/api/v1/namespaces/a/pods/b", True, "APPLY", "resource"),
        ("DELETE", "/api/v1/namespaces/a/pods", False, "DELETE", "namespace"),
        ("GET", "/api/v1/namespaces/a/pods", False, "LIST", "namespace"),
        ("GET", "/api/v1/namespaces/a/pods/b/log", False, "CONNECT", "resource"),
        ("GET", "/api/v1/nodes", False, "LIST", "cluster"),
    ],
)
def test_verb_and_scope_are_those_of_the_reference(
    method: str, path: str, applied: bool, verb: str, scope: str
) -> None:
    metrics = Metrics(_Nothing, {})  # type: ignore[arg-type]
    metrics.count(parse(method, path, {}), 200, 0.01, False, applied=applied)
    (counted,) = (line for line in lines(metrics) if line.startswith("apiserver_request_total"))
    assert f'verb="{verb}"' in counted and f'scope="{scope}"' in counted


def test_response_sizes_of_reads_are_counted() -> None:
    metrics = Metrics(_Nothing, {})  # type: ignore[arg-type]
    reading, changing = parse("GET", "/api/v1/pods", {}), parse("POST", "/api/v1/namespaces/a/pods", {})
    metrics.count(reading, 200, 0.01, False, body=b"x" * 1000)
    metrics.count(reading, 200, 0.01, False, body=[b"x" * 999, b"xx"])
    metrics.count(changing, 201, 0.01, False, body=b"x")
    found = [line for line in lines(metrics) if line.startswith("apiserver_response_sizes")]
    labels = 'component="apiserver",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"'
    bounds = ("1000", "10000", "100000", "1e+06", "1e+07", "1e+08", "1e+09", "+Inf")
    assert found == [
        f'apiserver_response_sizes_bucket{{{labels},le="1000"}} 1',
        *(f'apiserver_response_sizes_bucket{{{labels},le="{bound}"}} 2' for bound in bounds[1:]),
        f"apiserver_response_sizes_sum{{{labels}}} 2001",
        f"apiserver_response_sizes_count{{{labels}}} 2",
    ]


def test_counters_of_other_processes_are_added() -> None:
    one, other = Counters(), Counters()
    other.inflight = [1, 2]
    other.watches = {("WATCH", "", "v1", "pods", "", "cluster"): 3}
    where = ("GET", "", "v1", "pods", "", "resource")
    other.requests[where] = found = Requests("GET")
    found.codes, found.sum, found.bytes = {200: 1, 1404: 2}, 0.5, 5
    found.buckets[3] = found.sizes[0] = 3
    for _ in range(2):
        one.add(other.dump())
    assert one.inflight == [2, 4] and list(one.watches.values()) == [6]
    total = one.requests[where]
    assert (total.codes, total.sum, total.bytes) == ({200: 2, 1404: 4}, 1.0, 10)
    assert total.buckets[3] == total.sizes[0] == 6


def test_dry_runs_have_their_own_label() -> None:
    metrics = Metrics(_Nothing, {})  # type: ignore[arg-type]
    info = parse("POST", "/api/v1/namespaces/a/pods", {})
    metrics.count(info, 201, 0.01, True)
    metrics.count(info, 201, 0.01, False)
    counted = [line for line in lines(metrics) if line.startswith("apiserver_request_total")]
    assert ['code="201",component="apiserver",dry_run=""' in line for line in counted] == [True, False]
    assert 'code="201",component="apiserver",dry_run="All"' in counted[1]


def test_stable_metrics_have_the_names_and_labels_of_the_reference(server_pki: Pki, tmp_path: Path) -> None:
    with Live(server_pki, data_dir=str(tmp_path), feature_gates={"WatchList": False}) as live:
        client = live.client
        client.ask("GET", "/api/v1/namespaces/default/endpoints")
        with client.watch("/api/v1/namespaces/default/configmaps"):
            wait_for(lambda: live.server.api.watchers.get("/registry/configmaps/"))
            text = client.ask("GET", "/metrics").body.decode()
    found = text.splitlines()
    for line in (
        'apiserver_current_inflight_requests{request_kind="readOnly"} 1',
        'apiserver_current_inflight_requests{request_kind="mutating"} 0',
        'apiserver_longrunning_requests{component="apiserver",group="",resource="configmaps",scope="namespace",'
        'subresource="",verb="WATCH",version="v1"} 1',
        'apiserver_requested_deprecated_apis{group="",removed_release="",resource="endpoints",subresource="",'
        'version="v1"} 1',
        'apiserver_storage_objects{resource="deployments.apps"} 0',
        'kubernetes_feature_enabled{name="APIServerTracing",stage=""} 1',
        'kubernetes_feature_enabled{name="WatchList",stage="BETA"} 0',
    ):
        assert line in found, line
    size = re.search(
        r'^apiserver_storage_size_bytes\{storage_cluster_id="sqlite"\} (\d+)$', text, re.MULTILINE
    )
    assert size is not None and int(size[1]) > 0
    assert (
        text.count("\nkubernetes_feature_enabled{") == 242 and "\nkubernetes_build_info{build_date=" in text
    )


def test_disabled_metrics_are_left_out(server_pki: Pki) -> None:
    off = ("apiserver_storage_objects", "kubernetes_feature_enabled")
    with Live(server_pki, disabled_metrics=off) as live:
        text = live.client.ask("GET", "/metrics").body.decode()
    assert "apiserver_request_total" in text
    assert "apiserver_storage_objects" not in text and "kubernetes_feature_enabled" not in text


def test_admission_phases_are_timed(live: Live) -> None:
    client = live.client
    live.client.ask("DELETE", "/metrics")
    client.post("/api/v1/namespaces/default/configmaps", configmap("timed"))
    assert client.ask("POST", "/api/v1/namespaces/none/configmaps", configmap("x", "none")).status == 404
    client.delete("/api/v1/namespaces/default/configmaps/timed")
    text = client.ask("GET", "/metrics").body.decode()
    name = "apiserver_admission_step_admission_duration_seconds"
    for labels, count in (
        ('operation="CREATE",rejected="false",type="admit"', 1),
        ('operation="CREATE",rejected="false",type="validate"', 1),
        ('operation="CREATE",rejected="true",type="admit"', 1),
        ('operation="DELETE",rejected="false",type="admit"', 1),
        ('operation="DELETE",rejected="false",type="validate"', 1),
    ):
        assert f"{name}_count{{{labels}}} {count}\n" in text, labels
        assert f'{name}_bucket{{{labels},le="+Inf"}} {count}\n' in text
    assert f'{name}_bucket{{operation="CREATE",rejected="false",type="admit",le="2.5"}} 1\n' in text
