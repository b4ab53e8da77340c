"""Seats of lists, watches and writes in API Priority and Fairness, and their metrics."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kubist.api.filters.authorization.query import AuthorizationQuery
from kubist.api.filters.flowcontrol.flowcontrol import FlowControl
from kubist.api.filters.flowcontrol.seats import Seat
from kubist.api.filters.flowcontrol.work_estimate import ListEstimator, WatchTracker, final_seats
from kubist.api.resources.context import User
from kubist.model.meta.object import Object
from tests.filters.askers import Person
from tests.live import Client, Live, Pki
from tests.waiting import wait_for

MAPS = "/api/v1/namespaces/default/configmaps"


def asked(verb: str, resource: str = "configmaps", **what: str) -> AuthorizationQuery:
    found = AuthorizationQuery(User("jo"), verb, "", True, resource=resource)
    for name, value in what.items():
        setattr(found, name, value)
    return found


@pytest.fixture(scope="module")
def full(server_pki: Pki) -> Iterator[Live]:
    """Server with 300 ConfigMaps of about 10 kB."""
    with Live(server_pki) as live:
        for number in range(300):
            live.client.post(MAPS, {"metadata": {"name": f"big-{number}"}, "data": {"x": "y" * 9800}})
        yield live


@pytest.mark.parametrize(
    ("query", "most", "seats"),
    [
        ({}, 0, 10),
        ({}, 4, 4),
        ({"resourceVersion": "0"}, 0, 10),
        ({"limit": "50"}, 0, 6),
        ({"limit": "5"}, 0, 1),
        ({"limit": "50", "resourceVersion": "7"}, 0, 6),
        ({"resourceVersion": "7", "resourceVersionMatch": "Exact"}, 0, 31),
        ({"limit": "50", "continue": "x"}, 0, 6),
        ({"limit": "50", "continue": "x", "labelSelector": "a=b"}, 0, 16),
        ({"limit": "x"}, 0, 100),
    ],
)
def test_list_occupies_seats_by_the_size_of_its_objects(
    full: Live, query: dict[str, str], most: int, seats: int
) -> None:
    estimator = ListEstimator(full.server.registry)
    assert estimator.seats(asked("list"), query, most) == seats


@pytest.mark.parametrize(
    ("query", "seats"),
    [
        ({}, 10),
        ({"resourceVersion": "0"}, 10),
        ({"resourceVersion": "7"}, 1),
        ({"resourceVersion": "7", "sendInitialEvents": "true"}, 10),
        ({"resourceVersion": "7", "sendInitialEvents": "false"}, 1),
    ],
)
def test_watch_occupies_seats_for_its_initial_events(full: Live, query: dict[str, str], seats: int) -> None:
    assert ListEstimator(full.server.registry).seats(asked("watch"), query, 0) == seats


def test_list_of_one_name_or_of_an_unknown_resource_occupies_one_seat(full: Live) -> None:
    estimator = ListEstimator(full.server.registry)
    assert estimator.seats(asked("list", name="big-1"), {}, 0) == 1
    assert estimator.seats(asked("list", "unknown"), {}, 0) == 1


def test_list_occupies_seats_by_number_without_the_size_gate(server_pki: Pki) -> None:
    with Live(server_pki, feature_gates={"SizeBasedListCostEstimate": False}) as live:
        for number in range(250):
            live.client.post(MAPS, {"metadata": {"name": f"small-{number}"}})
        estimator = ListEstimator(live.server.registry)
        count = len(live.cache.collections["/registry/configmaps/"].entries)
        assert count // 100 == 2
        assert estimator.seats(asked("list"), {}, 0) == 3
        exact = {"resourceVersion": "7", "resourceVersionMatch": "Exact"}
        assert estimator.seats(asked("list"), exact, 0) == 6
        assert estimator.seats(asked("list"), exact | {"limit": "10", "labelSelector": "a"}, 0) == 3


@pytest.mark.parametrize(
    ("watches", "most", "seats", "seconds"),
    [
        (0, 0, 0, 0),
        (9, 0, 0, 0),
        (10, 0, 1, 0.005),
        (25, 0, 3, 0.005),
        (500, 0, 10, 0.025),
        (500, 5, 5, 0.05),
    ],
)
def test_write_occupies_seats_after_its_response_by_its_watches(
    watches: int, most: int, seats: int, seconds: float
) -> None:
    found, duration = final_seats(watches, most)
    assert found == seats
    assert duration == pytest.approx(seconds)


def test_watches_of_the_resource_the_namespace_and_the_name_are_interested() -> None:
    tracker = WatchTracker()
    assert tracker.interested(asked("create", namespace="a")) == 0
    keys = [
        tracker.register(asked("watch")),
        tracker.register(asked("watch", namespace="a")),
        tracker.register(asked("watch", namespace="a", name="x")),
        tracker.register(asked("watch", namespace="b")),
        tracker.register(asked("watch", "pods")),
        tracker.register(asked("watch", "pods", field_selector="spec.nodeName=")),
    ]
    assert tracker.register(asked("watch", "pods", field_selector="a=b,spec.nodeName=n")) is None
    assert tracker.interested(asked("update", namespace="a", name="x")) == 3
    assert tracker.interested(asked("update", namespace="a", name="y")) == 2
    assert tracker.interested(asked("create", namespace="b")) == 2
    assert tracker.interested(asked("create", "pods", namespace="b")) == 2
    for key in keys:
        assert key is not None
        tracker.forget(key)
    assert not tracker._counts


def control(live: Live) -> FlowControl:
    found = live.server.api.handler_chain._limits
    assert isinstance(found, FlowControl)
    return found


def values(client: Client, name: str, **labels: str) -> dict[str, float]:
    """Samples of a metric by the rest of their name and labels."""
    text = client.ask("GET", "/metrics").body.decode()
    found = {}
    for suffix, shown, value in re.findall(rf"^apiserver_flowcontrol_{name}(\w*){{(.*)}} (\S+)$", text, re.M):
        pairs = dict(re.findall(r'(\w+)="([^"]*)"', shown))
        if all(pairs.get(key) == value_ for key, value_ in labels.items()):
            found[f"{suffix} {pairs.get('le', '')}".strip()] = float(value)
    return found


def test_metrics_have_estimated_seats_watches_and_executions(full: Live) -> None:
    where = {"flow_schema": "global-default", "priority_level": "global-default"}
    bind = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "dev"}
    full.client.post(bind, {"metadata": {"name": "dev"}, "roleRef": role, "subjects": [subject]})
    dev = Person(full, "dev-token")
    dev.get(f"{MAPS}/big-1")
    dev.get(MAPS)
    with dev.watch(f"{MAPS}?resourceVersion=0") as watch:
        watch.take(300)
        wait_for(lambda: values(full.client, "current_executing_requests", **where) == {"": 0})
        dev.post(MAPS, {"metadata": {"name": "new"}})
        assert values(full.client, "watch_count_samples", **where) == {
            "_bucket 0": 0,
            **dict.fromkeys((f"_bucket {bound}" for bound in (1, 10, 100, 1000, 10000, "+Inf")), 1),
            "_sum": 1,
            "_count": 1,
        }
    seats = values(full.client, "work_estimated_seats", **where)
    # Of the 49 seats of the level, a request occupies at most 8.
    assert (seats["_count"], seats["_sum"]) == (4, 1 + 8 + 8 + 1)
    assert (seats["_bucket 1"], seats["_bucket 4"], seats["_bucket 8"]) == (2, 2, 4)
    regular = values(full.client, "request_execution_seconds", type="regular", **where)
    assert regular["_count"] == 3 and regular["_sum"] > 0
    assert values(full.client, "request_execution_seconds", type="watch", **where)["_count"] == 1
    assert values(full.client, "dispatched_requests_total", **where) == {"": 4}
    assert values(full.client, "current_executing_seats", **where) == {"": 0}
    assert values(full.client, "request_wait_duration_seconds", execute="true", **where)["_count"] == 4
    assert values(full.client, "nominal_limit_seats", priority_level="global-default") == {"": 49}
    wait_for(lambda: not control(full)._watches._counts)


def test_watch_that_the_server_rejects_is_not_counted(full: Live) -> None:
    assert full.client.ask("GET", f"{MAPS}?watch=1&labelSelector=,,").status == 400
    assert not control(full)._watches._counts


def limited(admin: Client, name: str, response: Object) -> None:
    """A priority level of one seat for the verbs of user dev on ConfigMaps."""
    flow = "/apis/flowcontrol.apiserver.k8s.io/v1"
    spec = {"nominalConcurrencyShares": 1, "borrowingLimitPercent": 0, "limitResponse": response}
    level = {"metadata": {"name": name}, "spec": {"type": "Limited", "limited": spec}}
    admin.post(f"{flow}/prioritylevelconfigurations", level)
    rule = {
        "verbs": ["*"],
        "apiGroups": [""],
        "resources": ["configmaps"],
        "namespaces": ["*"],
        "clusterScope": True,
    }
    subjects = [{"kind": "User", "user": {"name": "dev"}}]
    rules = [{"subjects": subjects, "resourceRules": [rule]}]
    schema = {"matchingPrecedence": 5, "priorityLevelConfiguration": {"name": name}, "rules": rules}
    admin.post(f"{flow}/flowschemas", {"metadata": {"name": name}, "spec": schema})


def test_wide_list_without_free_seats_is_rejected(server_pki: Pki) -> None:
    with Live(server_pki, max_requests_inflight=200, max_mutating_requests_inflight=0) as live:
        for number in range(30):
            live.client.post(MAPS, {"metadata": {"name": f"big-{number}"}, "data": {"x": "y" * 9800}})
        limited(live.client, "narrow", {"type": "Reject"})
        flow = control(live)
        list_ = asked("list")
        list_.user = User("dev")
        first = live.run(take(flow, list_))
        level = flow._levels["narrow"]
        assert first.width == 4 and level.executing == 4
        answer = Person(live, "dev-token").ask("GET", MAPS)
        assert answer.status == 429
        assert answer.headers["X-Kubernetes-PF-PriorityLevel-UID"] == level.uid
        assert answer.headers["Retry-After"] == "1"
        assert Person(live, "dev-token").ask("GET", f"{MAPS}?watch=1").status == 429
        assert not flow._watches._counts
        live.run(leave(first))
        assert level.executing == 0
        where = {"flow_schema": "narrow", "reason": "concurrency-limit"}
        assert values(live.client, "rejected_requests_total", **where) == {"": 2}
        assert values(live.client, "work_estimated_seats", flow_schema="narrow")["_count"] == 3


async def take(flow: FlowControl, query: AuthorizationQuery) -> Seat:
    seat = flow.seat(query)
    assert seat is not None
    return seat


async def leave(seat: Seat) -> None:
    seat.leave(0.001)
