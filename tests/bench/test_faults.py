"""Faults of requests: status, delays, closed connections, truncated bodies; over HTTP/1.1 and HTTP/2."""

from __future__ import annotations

import http.client
import threading
import time

import h2.exceptions
import pytest

from kubist.model.meta.object import Object
from kubist.testing import Cluster
from kubist.testing.cluster import Refused
from kubist.testing.faults import Fault
from tests.bench.fault_clients import (
    FAULTS,
    MAPS,
    ask,
    authorization,
    code,
    config_map,
    fails,
    http2_client,
)
from tests.live import concurrently
from tests.waiting import wait_for

# Many tests look at rules that do not act.
pytestmark = pytest.mark.filterwarnings("ignore::kubist.testing.plugin.UnusedFaultWarning")


def test_issue_example_conflicts_twice(cluster: Cluster) -> None:
    [made] = cluster.load(config_map("a", k="1"))
    with cluster.faults.add(verb="update", resource="configmaps", status=409, times=2) as fault:
        assert [code(cluster, "PUT", f"{MAPS}/a", made) for _ in range(3)] == [409, 409, 200]
        assert fault.hits == 2
    assert fault.hits == 2 and fault.matches == 2
    assert len(cluster.faults) == 0


@pytest.mark.parametrize(
    ("method", "path", "status", "reason", "message"),
    [
        (
            "PUT",
            f"{MAPS}/a",
            409,
            "Conflict",
            'Operation cannot be fulfilled on configmaps "a": the object has been',
        ),
        ("POST", MAPS, 409, "AlreadyExists", 'configmaps "a" already exists'),
        ("GET", f"{MAPS}/a", 404, "NotFound", 'configmaps "a" not found'),
        (
            "GET",
            "/apis/apps/v1/namespaces/n/deployments/d",
            404,
            "NotFound",
            'deployments.apps "d" not found',
        ),
        ("GET", f"{MAPS}/a", 403, "Forbidden", 'configmaps "a" is forbidden: injected fault'),
        ("GET", MAPS, 410, "Expired", "The resourceVersion for the provided list is too old."),
        ("GET", f"{MAPS}?watch=1", 410, "Expired", "The resourceVersion for the provided watch is too old."),
        ("POST", MAPS, 422, "Invalid", 'ConfigMap "a" is invalid'),
        ("GET", MAPS, 429, "TooManyRequests", "the server has received too many requests"),
        ("GET", MAPS, 500, "InternalError", "Internal error occurred"),
        ("GET", MAPS, 503, "ServiceUnavailable", "the server is currently unable to handle the request"),
        ("GET", MAPS, 504, "Timeout", "Timeout: request did not complete"),
        ("GET", "/version", 401, "Unauthorized", "Unauthorized"),
        ("GET", "/healthz", 404, "NotFound", "the server could not find the requested resource"),
        ("GET", MAPS, 418, None, "I'm a Teapot"),
        ("GET", MAPS, 599, None, "status 599"),
    ],
)
def test_status_has_the_words_of_the_reference(
    kubist_server: Cluster, method: str, path: str, status: int, reason: str | None, message: str
) -> None:
    with kubist_server.faults.add(status=status):
        sent = config_map("a") if method in ("PUT", "POST") else None
        got, body, _ = ask(kubist_server, method, path, sent)
    assert got == body["code"] == status
    assert (body["kind"], body.get("reason")) == ("Status", reason)
    assert body["message"].startswith(message)


def test_status_with_given_words_and_retry_after(cluster: Cluster) -> None:
    cluster.faults.add(
        resource="configmaps", status=429, reason="Busy", message="later", retry_after="1500ms"
    )
    got, body, headers = ask(cluster, "GET", MAPS)
    assert got == 429 and body["reason"] == "Busy" and body["message"] == "later"
    assert headers["Retry-After"] == "2" and body["details"]["retryAfterSeconds"] == 2


def test_failed_write_has_no_effect(cluster: Cluster) -> None:
    with cluster.faults.add(verb="create", status=500):
        assert code(cluster, "POST", MAPS, config_map("a")) == 500
    assert code(cluster, "GET", f"{MAPS}/a") == 404


def test_times_is_exact_under_concurrent_requests(cluster: Cluster) -> None:
    cluster.load(config_map("a"))
    with cluster.faults.add(
        verb="get", resource="configmaps", status=503, times=7, expression='request.name == "a"'
    ) as fault:

        def several() -> list[int]:
            return [code(cluster, "GET", f"{MAPS}/a") for _ in range(5)]

        codes = [found for part in concurrently(*[several] * 6) for found in part]
        assert sorted(codes) == [200] * 23 + [503] * 7
        assert fault.hits == 7


def test_delay_before_and_after_the_write(cluster: Cluster) -> None:
    def created(name: str) -> bool:
        # An internal read: no rule acts on it.
        registry = cluster.inner.registry
        return registry.get("configmaps", name, "default") is not None

    def check(name: str, fault: Fault, is_there: bool) -> None:
        codes: list[int] = []
        thread = threading.Thread(target=lambda: codes.append(code(cluster, "POST", MAPS, config_map(name))))
        with fault:
            thread.start()
            fault.wait()
            wait_for(lambda: created(name) == is_there)
            assert codes == []
        thread.join(20)
        assert codes == [201] and created(name)

    check("before", cluster.faults.add(verb="create", resource="configmaps", delay="1h"), is_there=False)
    check("after", cluster.faults.add(verb="create", resource="configmaps", delay_after="1h"), is_there=True)


def test_delay_ends_after_its_time(cluster: Cluster) -> None:
    cluster.faults.add(resource="configmaps", delay=0.2, delay_after="100ms", times=1)
    began = time.monotonic()
    assert code(cluster, "GET", MAPS) == 200
    assert time.monotonic() - began >= 0.3


def test_delay_comes_before_a_status_and_delays_add_up(cluster: Cluster) -> None:
    cluster.faults.add(resource="configmaps", delay=0.1)
    cluster.faults.add(resource="configmaps", delay=0.1, status=500)
    began = time.monotonic()
    assert code(cluster, "GET", MAPS) == 500
    assert time.monotonic() - began >= 0.2


def test_held_requests_go_on_when_the_server_stops() -> None:
    cluster = Cluster()
    cluster.start()
    fault = cluster.faults.add(resource="configmaps", delay="1h")
    codes: list[object] = []

    def read() -> None:
        try:
            codes.append(code(cluster, "GET", MAPS))
        except (OSError, http.client.HTTPException) as error:
            codes.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    fault.wait()
    cluster.stop()
    thread.join(20)
    assert codes == [200]


def test_number_of_held_requests_is_limited(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubist.testbench.faults.injection.MOST_HELD", 0)
    cluster.faults.add(resource="configmaps", delay="1h")
    got, body, _ = ask(cluster, "GET", MAPS)
    assert got == 429 and "delay 0 requests already" in body["message"]


@pytest.mark.parametrize(("when", "is_there"), [("before", False), ("after", True)])
def test_close_before_and_after_the_write(cluster: Cluster, when: str, is_there: bool) -> None:
    cluster.faults.add(verb="create", resource="configmaps", close=when, times=2)  # type: ignore[arg-type]
    error = fails(lambda: code(cluster, "POST", MAPS, config_map("a")))
    assert isinstance(error, http.client.RemoteDisconnected)
    assert (code(cluster, "GET", f"{MAPS}/a") == 200) == is_there
    with http2_client(cluster) as client:
        made = b'{"metadata":{"name":"b"}}'
        reply = client.ask("POST", MAPS, made, authorization(cluster))
        assert reply.reset is not None and reply.status == 0
        found = client.ask("GET", f"{MAPS}/b", extra=authorization(cluster))
        assert (found.status == 200) == is_there


def test_body_is_truncated(cluster: Cluster) -> None:
    cluster.load(config_map("a", k="1"))
    cluster.faults.add(verb="get", resource="configmaps", truncate=20)
    error = fails(lambda: code(cluster, "GET", f"{MAPS}/a"))
    assert isinstance(error, http.client.IncompleteRead) and len(error.partial) == 20
    with http2_client(cluster) as client:
        stream = client.send("GET", f"{MAPS}/a", extra=authorization(cluster))
        with pytest.raises(h2.exceptions.InvalidBodyLengthError) as caught:
            client.finish(stream)
        assert caught.value.actual_length == 20


def test_body_is_truncated_to_nothing(cluster: Cluster) -> None:
    cluster.load(config_map("a", k="1"))
    cluster.faults.add(verb="get", resource="configmaps", truncate=0)
    error = fails(lambda: code(cluster, "GET", f"{MAPS}/a"))
    assert isinstance(error, http.client.IncompleteRead) and error.partial == b""
    with http2_client(cluster) as client:
        assert client.ask("GET", f"{MAPS}/a", extra=authorization(cluster)).reset is not None


def test_rules_act_in_order_until_one_ends_the_request(cluster: Cluster) -> None:
    first = cluster.faults.add(resource="configmaps", status=500, times=1)
    second = cluster.faults.add(resource="configmaps", status=503, times=1)
    assert [code(cluster, "GET", MAPS) for _ in range(3)] == [500, 503, 200]
    assert (first.hits, second.hits) == (1, 1)


def test_nth_every_and_probability(cluster: Cluster) -> None:
    def codes(count: int) -> str:
        return "".join("x" if code(cluster, "GET", MAPS) == 500 else "." for _ in range(count))

    with cluster.faults.add(resource="configmaps", nth=3, status=500) as fault:
        assert codes(6) == "..x..."
        assert (fault.hits, fault.matches) == (1, 6)
    with cluster.faults.add(resource="configmaps", every=2, times=2, status=500):
        assert codes(6) == ".x.x.."
    runs = []
    for seed in (5, 5, 6):
        with cluster.faults.add(resource="configmaps", probability=0.5, seed=seed, status=500):
            runs.append(codes(16))
    assert runs[0] == runs[1] != runs[2]
    assert "x" in runs[0] and "." in runs[0]


def test_control_loops_and_the_control_api_are_not_affected(cluster: Cluster) -> None:
    cluster.faults.add(status=503)
    assert code(cluster, "GET", "/readyz") == code(cluster, "GET", MAPS) == 503
    assert len(cluster.faults) == 1
    cluster.faults.clear()
    cluster.faults.add(verb="create", resource="serviceaccounts", status=500)
    cluster.load({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    wait_for(lambda: [a["metadata"]["name"] for a in cluster.list("serviceaccounts", "n")] == ["default"])


def test_unauthorized_requests_are_not_counted(cluster: Cluster) -> None:
    fault = cluster.faults.add(resource="configmaps", status=500)
    assert code(cluster, "GET", MAPS, Authorization="Bearer wrong") == 401
    assert fault.matches == 0


def test_rules_over_http(cluster: Cluster) -> None:
    rule = {"verb": ["get", "list"], "resource": "configmaps", "status": 500}
    got, made, _ = ask(cluster, "POST", FAULTS, rule)
    assert got == 201
    assert made == {"id": made["id"], **rule, "matches": 0, "hits": 0}
    assert code(cluster, "GET", MAPS) == 500
    assert ask(cluster, "GET", FAULTS)[1] == {"items": [{**made, "matches": 1, "hits": 1}]}
    assert ask(cluster, "GET", f"{FAULTS}/{made['id']}")[1]["hits"] == 1
    got, removed, _ = ask(cluster, "DELETE", f"{FAULTS}/{made['id']}")
    assert got == 200 and removed["hits"] == 1
    for method in ("GET", "DELETE"):
        got, body, _ = ask(cluster, method, f"{FAULTS}/{made['id']}")
        assert got == 404 and body["reason"] == "NotFound"
    assert code(cluster, "GET", MAPS) == 200


def test_server_without_rules_serves_requests_itself(cluster: Cluster) -> None:
    api = cluster.inner.api
    assert cluster.inner.bench is not None and cluster.inner.bench._faults is None
    assert "serve" not in vars(api)
    with cluster.faults.add(resource="configmaps", status=500):
        assert "serve" in vars(api)
    assert "serve" not in vars(api)


def test_number_of_rules_and_their_size_are_limited(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubist.testbench.faults.injection.MOST_RULES", 2)
    for _ in range(2):
        cluster.faults.add(resource="configmaps", status=500)
    with pytest.raises(Refused) as refused:
        cluster.faults.add(resource="configmaps", status=500)
    assert refused.value.code == 409
    body: Object = {"status": 500, "message": "x" * 70_000}
    assert code(cluster, "POST", FAULTS, body) == 413
    assert len(cluster.faults) == 2


def test_lease_is_taken_over(cluster: Cluster) -> None:
    fault = cluster.faults.add(take_lease="other", namespace="default", name="leader", lease_duration="30s")
    spec = cluster.get("lease/leader")["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("other", 30)
    assert fault.hits == 1
    mine = cluster.get("lease/leader")
    mine["spec"]["holderIdentity"] = "me"
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/leader"
    assert code(cluster, "PUT", path, mine) == 200
    cluster.faults.add(take_lease="third", namespace="default", name="leader", verb="update", nth=2)
    assert code(cluster, "PUT", path, cluster.get("lease/leader")) == 200
    assert cluster.get("lease/leader")["spec"]["holderIdentity"] == "me"
    assert code(cluster, "PUT", path, cluster.get("lease/leader")) == 409
    spec = cluster.get("lease/leader")["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("third", 1)


def test_history_of_a_shared_store_cannot_be_expired(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster.inner.registry.store, "local", False)
    for rule in ({"expireHistory": True}, {"expireHistory": True, "verb": "list"}):
        got, body, _ = ask(cluster, "POST", FAULTS, rule)
        assert got == 409 and "shared with other servers" in body["message"]
    assert len(cluster.faults) == 0


def test_rules_need_the_permission_for_their_path(cluster: Cluster) -> None:
    alice = cluster.user("alice", rules=[{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
    rule = {"resource": "configmaps", "status": 500}
    bearer = f"Bearer {alice.token}"
    assert code(cluster, "POST", FAULTS, rule, Authorization=bearer) == 403
    assert code(cluster, "GET", FAULTS, Authorization=bearer) == 403
    with cluster.faults.add(resource="configmaps", user="alice", status=500) as fault:
        assert code(cluster, "GET", MAPS, Authorization=bearer) == 500
        assert code(cluster, "DELETE", f"{FAULTS}/{fault.id}", Authorization=bearer) == 403
        assert code(cluster, "GET", MAPS) == 200
