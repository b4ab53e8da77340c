"""API Priority and Fairness: seats, queues, shuffle sharding, turns; and the in-flight limits."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from kubist.api.filters.authorization.query import AuthorizationQuery
from kubist.api.filters.flowcontrol.flowcontrol import ALL_TURNS, TURNS, FlowControl
from kubist.api.filters.flowcontrol.flowschemas import FlowSchema
from kubist.api.filters.flowcontrol.inflight import InFlight
from kubist.api.filters.flowcontrol.priority_level import Level
from kubist.api.filters.flowcontrol.seats import Seat, TooManyRequests, Traffic, long_running
from kubist.api.resources.context import User
from kubist.model.meta.object import Object
from tests.filters.askers import ask
from tests.live import Client, Live, Pki


def asked(user: str = "jo", verb: str = "get", **what: str) -> AuthorizationQuery:
    attributes = AuthorizationQuery(User(user, groups=("g", "system:authenticated")), verb, "", True)
    attributes.resource = "pods"
    for name, value in what.items():
        setattr(attributes, name, value)
    return attributes


def schema(**spec: Any) -> FlowSchema:
    return FlowSchema({"metadata": {"name": "s", "uid": "u"}, "spec": spec})


ANY_RESOURCE = {
    "verbs": ["*"],
    "apiGroups": ["*"],
    "resources": ["*"],
    "namespaces": ["*"],
    "clusterScope": True,
}


@pytest.mark.parametrize(
    ("subject", "matches"),
    [
        ({"kind": "User", "user": {"name": "jo"}}, True),
        ({"kind": "User", "user": {"name": "*"}}, True),
        ({"kind": "User", "user": {"name": "al"}}, False),
        ({"kind": "Group", "group": {"name": "g"}}, True),
        ({"kind": "Group", "group": {"name": "h"}}, False),
        ({"kind": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "*"}}, False),
    ],
)
def test_flow_schema_matches_subjects(subject: Object, matches: bool) -> None:
    rules = [{"subjects": [subject], "resourceRules": [ANY_RESOURCE]}]
    assert schema(rules=rules).matches(asked()) is matches


@pytest.mark.parametrize(
    ("rule", "matches"),
    [
        ({}, True),
        ({"verbs": ["list"]}, False),
        ({"resources": ["pods"]}, True),
        ({"resources": ["pods/log"]}, False),
        ({"apiGroups": ["apps"]}, False),
        ({"namespaces": ["n"]}, True),
        ({"namespaces": ["m"]}, False),
    ],
)
def test_flow_schema_matches_resource_rules(rule: Object, matches: bool) -> None:
    everybody = {"kind": "Group", "group": {"name": "*"}}
    rules = [{"subjects": [everybody], "resourceRules": [ANY_RESOURCE | rule]}]
    assert schema(rules=rules).matches(asked(namespace="n")) is matches


def test_flow_schema_matches_paths() -> None:
    everybody = {"kind": "User", "user": {"name": "*"}}
    rule = {"verbs": ["*"], "nonResourceURLs": ["/healthz", "/apis/*"]}
    found = schema(rules=[{"subjects": [everybody], "nonResourceRules": [rule]}])
    for path, matches in (("/healthz", True), ("/healthz/etcd", True), ("/apis/x", True), ("/x", False)):
        question = AuthorizationQuery(User("jo"), "get", path)
        assert found.matches(question) is matches


def level(**limited: Any) -> Level:
    return Level({"metadata": {"name": "l", "uid": "u"}, "spec": {"type": "Limited", "limited": limited}})


def test_flow_is_always_dealt_the_same_distinct_queues() -> None:
    one = level(
        nominalConcurrencyShares=1,
        limitResponse={"type": "Queue", "queuing": {"queues": 16, "handSize": 4, "queueLengthLimit": 2}},
    )
    for flow in map(str, range(50)):
        hand = []
        for _ in range(4):
            queue = one.deal(flow)
            seat = Seat(None, Traffic("s", "u", one))  # type: ignore[arg-type]
            queue.waiting.append(seat)
            queue.work += seat.work
            hand.append(queue)
        assert len(set(map(id, hand))) == 4
        for queue in hand:
            queue.waiting.clear()
            queue.work = 0.0


class Levels:
    """Flow control with the levels of a test, without a server."""

    def __init__(self, seats: int, patience: float = 30.0, **limited: Any) -> None:
        self.control = FlowControl(None, seats, patience=patience)  # type: ignore[arg-type]
        level_ = {"metadata": {"name": "l", "uid": "l"}, "spec": {"type": "Limited", "limited": limited}}
        everybody = [{"subjects": [{"kind": "User", "user": {"name": "*"}}], "resourceRules": [ANY_RESOURCE]}]
        by_user = {"type": "ByUser"}
        found = schema(rules=everybody, priorityLevelConfiguration={"name": "l"}, distinguisherMethod=by_user)
        self.control._schemas.classify = lambda request: found  # type: ignore[method-assign]
        self.control._configure([level_])

    async def request(self, user: str, log: list[str], seconds: float = 0.0) -> str:
        try:
            seat = self.control.seat(asked(user))
        except TooManyRequests:
            return "refused"
        assert seat is not None
        try:
            await seat.ready()
        except TooManyRequests:
            return "too long"
        else:
            log.append(user)
            await asyncio.sleep(seconds)
            return "served"
        finally:
            seat.leave(0.001)


QUEUED: Object = {
    "nominalConcurrencyShares": 1,
    "limitResponse": {"type": "Queue", "queuing": {"queues": 64, "handSize": 8, "queueLengthLimit": 50}},
}


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def test_noisy_user_does_not_starve_another() -> None:
    async def main() -> list[str]:
        levels = Levels(2, **QUEUED)
        log: list[str] = []
        noisy = [asyncio.ensure_future(levels.request("noisy", log, 0.001)) for _ in range(60)]
        await asyncio.sleep(0)
        quiet = [asyncio.ensure_future(levels.request("quiet", log, 0.001)) for _ in range(3)]
        await asyncio.gather(*noisy, *quiet)
        return log

    log = run(main())
    assert len(log) == 63
    assert max(index for index, user in enumerate(log) if user == "quiet") < 40


def test_full_level_without_queues_rejects() -> None:
    async def main() -> list[str]:
        levels = Levels(2, nominalConcurrencyShares=1, limitResponse={"type": "Reject"})
        return await asyncio.gather(*(levels.request("jo", [], 0.01) for _ in range(5)))

    assert sorted(run(main())) == ["refused"] * 3 + ["served"] * 2


def test_full_queues_reject() -> None:
    async def main() -> list[str]:
        queuing = {"queues": 1, "handSize": 1, "queueLengthLimit": 2}
        response = {"type": "Queue", "queuing": queuing}
        levels = Levels(1, nominalConcurrencyShares=1, limitResponse=response)
        return await asyncio.gather(*(levels.request("jo", [], 0.01) for _ in range(5)))

    assert sorted(run(main())) == ["refused"] * 2 + ["served"] * 3


def test_queue_timeout_rejects_and_frees_the_place() -> None:
    async def main() -> tuple[list[str], str]:
        levels = Levels(1, patience=0.1, **QUEUED)
        first = asyncio.ensure_future(levels.request("jo", [], 0.2))
        await asyncio.sleep(0)
        second = await levels.request("jo", [])
        outcome = [await first, second]
        return outcome, await levels.request("jo", [])

    assert run(main()) == (["served", "too long"], "served")


def test_disconnected_client_frees_its_place_in_the_queue() -> None:
    async def main() -> int:
        levels = Levels(1, **QUEUED)
        first = asyncio.ensure_future(levels.request("jo", [], 0.05))
        await asyncio.sleep(0)
        gone = asyncio.ensure_future(levels.request("jo", []))
        await asyncio.sleep(0)
        gone.cancel()
        await first
        level_ = levels.control._levels["l"]
        return level_.executing + level_.queued

    assert run(main()) == 0


def test_unused_seats_are_borrowed() -> None:
    control = FlowControl(None, 20, 1)  # type: ignore[arg-type]
    spec = {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}
    control._configure(
        [
            {"metadata": {"name": name, "uid": name}, "spec": {"type": "Limited", "limited": spec | more}}
            for name, more in (("lender", {"lendablePercent": 50}), ("busy", {"borrowingLimitPercent": 30}))
        ]
    )
    busy = control._levels["busy"]
    busy.executing = busy.nominal
    assert control._has_free_seat(busy)
    busy.executing = busy.nominal + 3
    assert not control._has_free_seat(busy)
    control._levels["lender"].executing = 10
    busy.executing = busy.nominal
    assert not control._has_free_seat(busy)


def test_one_user_starts_few_requests_per_turn() -> None:
    async def main() -> tuple[int, bool]:
        levels = Levels(1000, **QUEUED)
        noisy = [levels.control.seat(asked("noisy")) for _ in range(20)]
        at_once = sum(seat is not None and seat.turn is None for seat in noisy)
        quiet = levels.control.seat(asked("quiet"))
        await asyncio.gather(*(seat.ready() for seat in noisy if seat is not None))
        return at_once, quiet is not None and quiet.turn is None

    assert run(main()) == (TURNS, True)


def test_all_users_together_start_few_requests_per_turn() -> None:
    async def main() -> list[int]:
        flows = Levels(1000, **QUEUED).control
        seats = [flows.seat(asked(f"user-{number % 20}")) for number in range(40)]
        begun = []
        waiting = [seat.turn for seat in seats if seat is not None and seat.turn is not None]
        begun.append(len(seats) - len(waiting))
        while not all(turn.done() for turn in waiting):
            before = sum(turn.done() for turn in waiting)
            await asyncio.sleep(0)
            begun.append(sum(turn.done() for turn in waiting) - before)
        return begun

    begun = run(main())
    assert max(begun) == ALL_TURNS and sum(begun) == 40


def test_long_running_requests_take_no_seat() -> None:
    assert long_running(asked(verb="watch"))
    assert long_running(asked(subresource="exec", verb="create"))
    assert not long_running(asked(verb="list"))
    assert InFlight(1, 1).seat(asked(verb="watch"), {}) is None


def test_inflight_limits_count_reads_and_writes_separately() -> None:
    limits = InFlight(1, 1)
    reading, writing = limits.seat(asked(), {}), limits.seat(asked(verb="create"), {})
    assert reading is not None and writing is not None
    with pytest.raises(TooManyRequests):
        limits.seat(asked(verb="list"), {})
    master = asked(verb="list")
    master.user = User("root", groups=("system:masters",))
    assert limits.seat(master, {}) is None
    reading.leave(0.001)
    assert limits.seat(asked(verb="list"), {}) is not None


def test_response_names_flow_schema_and_level(cluster: Live, admin: Client) -> None:
    headers = {name.lower(): value for name, value in ask(cluster, "GET", "/version", "dev-token").headers}
    flow = "/apis/flowcontrol.apiserver.k8s.io/v1"
    schema_ = admin.get(f"{flow}/flowschemas/global-default")
    level_ = admin.get(f"{flow}/prioritylevelconfigurations/global-default")
    assert headers[b"x-kubernetes-pf-flowschema-uid"].decode() == schema_["metadata"]["uid"]
    assert headers[b"x-kubernetes-pf-prioritylevel-uid"].decode() == level_["metadata"]["uid"]


def test_new_flow_schema_takes_effect_at_once(cluster: Live, admin: Client) -> None:
    flow = "/apis/flowcontrol.apiserver.k8s.io/v1"
    limited = {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}
    spec = {"type": "Limited", "limited": limited}
    admin.post(f"{flow}/prioritylevelconfigurations", {"metadata": {"name": "slow"}, "spec": spec})
    subjects = [{"kind": "User", "user": {"name": "dev"}}]
    rule = {"subjects": subjects, "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/version"]}]}
    wanted = {
        "matchingPrecedence": 2,
        "priorityLevelConfiguration": {"name": "slow"},
        "rules": [rule],
    }
    made = admin.post(f"{flow}/flowschemas", {"metadata": {"name": "devs"}, "spec": wanted})
    headers = dict(ask(cluster, "GET", "/version", "dev-token").headers)
    assert headers[b"X-Kubernetes-PF-FlowSchema-UID"].decode() == made["metadata"]["uid"]


def test_too_many_requests_get_retry_after(server_pki: Pki) -> None:
    flags = {"enable_priority_and_fairness": False, "max_requests_inflight": 1}
    with Live(server_pki, **flags) as live:
        limits = live.server.api.handler_chain._limits
        assert isinstance(limits, InFlight)
        limits.count[0] = 1
        answer = ask(live, "GET", "/version", "dev-token")
        assert answer.status == 429
        assert (b"Retry-After", b"1") in answer.headers
        assert ask(live, "GET", "/version", "admin-token").status == 200
        limits.count[0] = 0
        assert ask(live, "GET", "/version", "dev-token").status == 200
