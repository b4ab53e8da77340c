"""CEL expressions that use their whole cost budget do not block other requests: in schemas, policies and large CRDs."""

from __future__ import annotations

import gc
import threading
import time

from kubist.model.meta.object import Object
from tests.crd.defining import CRDS, define, definition, obj, version
from tests.live import Live

PATIENCE = 0.1
"""Maximum CPU time in seconds for which one request may hold the event loop at a stretch."""
PAIRS = "self.names.all(a, self.names.all(b, a != b + 'x{}'))"
"""With 200 names it costs a large part of the limit of one expression."""


def costly(rules: int) -> Object:
    names = {"type": "array", "maxItems": 200, "items": {"type": "string", "maxLength": 5}}
    spec = {
        "type": "object",
        "properties": {"names": names},
        "x-kubernetes-validations": [{"rule": PAIRS.format(number)} for number in range(rules)],
    }
    return {"type": "object", "properties": {"spec": spec}}


class Probe(threading.Thread):
    """Requests the health endpoint again and again, and measures for how long the event loop is held.

    Time is the CPU time of the loop's thread, because a busy machine delays any response. Objects of earlier
    tests are hidden from the garbage collector, because it would take half a second to visit them in
    whichever thread it runs.
    """

    def __init__(self, live: Live) -> None:
        super().__init__()
        self._live = live
        self._done = threading.Event()
        self._ticking = True
        self._last = 0.0
        self.answers = 0
        self.held: list[float] = []

    def run(self) -> None:
        while not self._done.wait(0.01):
            assert self._live.client.ask("GET", "/readyz").status == 200
            self.answers += 1

    def _tick(self) -> None:
        now = time.thread_time()
        self.held.append(now - self._last)
        self._last = now
        if self._ticking:
            self._live.loop.call_later(0.002, self._tick)

    async def _begin(self) -> None:
        self._last = time.thread_time()
        self._tick()

    async def _end(self) -> None:
        self._ticking = False
        self._tick()

    def __enter__(self) -> Probe:
        gc.collect()
        gc.freeze()
        self._live.run(self._begin())
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self.join()
        self._live.run(self._end())
        gc.unfreeze()

    def check(self) -> None:
        assert self.answers > 3
        assert max(self.held) < PATIENCE, sorted(self.held)[-10:]


def test_costly_schema_rules_do_not_block_other_requests(live: Live) -> None:
    at = define(live.client, definition("Heavy", "heavy.example.com", version(schema=costly(3))))
    path = f"{at}/v1/namespaces/default/heavys"
    names = [f"n{number}" for number in range(200)]
    with Probe(live) as probe:
        made = live.client.post(path, obj("Heavy", "heavy.example.com/v1", "a", spec={"names": names}))
        made["metadata"]["labels"] = {"a": "b"}
        live.client.put(f"{path}/a", made)
    probe.check()


def test_costly_policies_do_not_block_other_requests(live: Live) -> None:
    group = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    pairs = "object.data.all(a, object.data.all(b, a != b + 'x{}'))"
    policy = {
        "metadata": {"name": "pairs"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": pairs.format(number)} for number in range(3)],
        },
    }
    binding = {
        "metadata": {"name": "pairs"},
        "spec": {"policyName": "pairs", "validationActions": ["Deny"]},
    }
    live.client.post(f"{group}/validatingadmissionpolicies", policy)
    live.client.post(f"{group}/validatingadmissionpolicybindings", binding)
    data = {f"n{number}": "" for number in range(200)}
    with Probe(live) as probe:
        made = {"metadata": {"name": "a"}, "data": data}
        live.client.post("/api/v1/namespaces/default/configmaps", made)
    probe.check()


def test_large_crd_does_not_block_other_requests(live: Live) -> None:
    leaf = {"type": "object", "properties": {f"f{n}": {"type": "string", "maxLength": 9} for n in range(99)}}
    schema = {"type": "object", "properties": {f"p{n}": leaf for n in range(40)}}
    with Probe(live) as probe:
        live.client.post(CRDS, definition("Broad", "broad.example.com", version(schema=schema)))
        time.sleep(0.2)
    probe.check()
