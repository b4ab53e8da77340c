"""Workloads of `make bench`: operations on pods of 3.4 KB.

A `Target` names the server of a workload. The bare server answers any workload with the number of bytes it asks for.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from loader import Connection, Sample, connect, request, run, tls

TOKEN = "bench-token"
PODS = "/api/v1/namespaces/bench/pods"
JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
WATCHERS = 100


@dataclass
class Target:
    """Server under load."""

    port: int
    objects: int
    size: int = 0
    """Size in bytes of a bare server's answers; 0 for a real server."""

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
        if self.size:
            headers["X_Bytes"] = str(self.size)
        return request(method, path, TOKEN, body, **headers)


Run = Callable[[], Awaitable[Sample]]
Workload = Callable[[Target], Awaitable[Run]]
"""Does the preparation, which is not measured, and returns the operations to measure."""


def name(number: int) -> str:
    return f"{PODS}/pod-{number:06}"


def pod(number: int) -> bytes:
    """About 3.4 KB once the server has filled it in, like a typical pod."""
    env = ",".join(f'{{"name":"VAR_{k}","value":"value-of-variable-{k}-{number}"}}' for k in range(12))
    return (
        f'{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"pod-{number:06}","namespace":"bench",'
        f'"labels":{{"app":"app-{number % 50}","tier":"t{number % 5}"}},"annotations":{{"note":"first"}}}},\n'
        f'"spec":{{"containers":[{{"name":"main","image":"registry.example/app:{number % 7}",'
        f'"ports":[{{"containerPort":8080,"name":"http"}}],"env":[{env}],'
        '"resources":{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"memory":"256Mi"}}}],'
        '"nodeSelector":{"disk":"ssd"},"automountServiceAccountToken":false}}'
    ).encode()


def each(
    target: Target, total: int, make: Callable[[int], bytes], *, clients: int = 16, expected: int = 200
) -> Run:
    """One request per operation, made from the operation's number."""

    async def do(client: Connection, number: int) -> tuple[int, int]:
        status, body = await client.ask(make(number))
        return status, len(body)

    return lambda: run(target.port, clients, total, expected, do)


async def make_namespace(target: Target) -> None:
    client = await connect(target.port, tls())
    body = b'{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"bench"}}'
    status, answer = await client.ask(target.ask("POST", "/api/v1/namespaces", body, Content_Type=JSON))
    assert status in (201, 409), answer
    client.transport.close()


async def create(target: Target) -> Run:
    def ask(i: int) -> bytes:
        return target.ask("POST", PODS, pod(i), Content_Type=JSON)

    return each(target, target.objects, ask, expected=201)


CUSTOM_GROUP = "bench.example.org"
CUSTOM = f"/apis/{CUSTOM_GROUP}/v1/namespaces/bench/orders"
CUSTOM_RULES = (
    "self.lines.all(l, l.count > 0)",
    "self.lines.map(l, l.count).sum() <= 1000",
    "!has(self.ships) || self.ships > timestamp('2020-01-01T00:00:00Z')",
    "self.customer.matches('^[a-z0-9-]+$')",
    "quantity(self.weight).isLessThan(quantity('1Gi'))",
    "self.state != 'paid' || has(self.payment)",
    "self.lines.exists_one(l, l.name == 'item-0')",
    "self.tags.size() <= 10",
    "self.state == 'new' || self.priority > 0",
    "isIP(self.address)",
)


def order_definition() -> bytes:
    text = {"type": "string", "maxLength": 200}
    line = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "maxLength": 40},
            "count": {"type": "integer"},
            "note": text,
        },
    }
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    spec = {
        "type": "object",
        "required": ["customer", "lines"],
        "properties": {
            **dict.fromkeys(("customer", "payment", "weight", "address"), text),
            "state": {"type": "string", "enum": ["new", "paid"], "default": "new"},
            "priority": {"type": "integer", "default": 1},
            "ships": {"type": "string", "format": "date-time"},
            "tags": {"type": "object", "maxProperties": 20, "additionalProperties": text},
            "lines": {"type": "array", "maxItems": 50, "items": line, **keyed},
        },
        "x-kubernetes-validations": [{"rule": rule} for rule in CUSTOM_RULES],
    }
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "orders", "kind": "Order"}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"orders.{CUSTOM_GROUP}"},
        "spec": {"group": CUSTOM_GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    return json.dumps(crd).encode()


def order(number: int) -> bytes:
    """About 2 KB once it is stored."""
    lines = [{"name": f"item-{k}", "count": k + 1, "note": f"the {k}th of {number}" * 3} for k in range(16)]
    spec = {
        "customer": f"customer-{number}",
        "weight": "12Ki",
        "address": "10.1.2.3",
        "ships": "2026-01-01T00:00:00Z",
        "tags": {"a": "b", "c": "d"},
        "lines": lines,
    }
    metadata = {"name": f"order-{number:06}"}
    body = {"apiVersion": f"{CUSTOM_GROUP}/v1", "kind": "Order", "metadata": metadata, "spec": spec}
    return json.dumps(body).encode()


async def custom(target: Target) -> Run:
    """Creates of custom objects that ten rules validate."""
    if not target.size:
        client = await connect(target.port, tls())
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        await client.ask(target.ask("POST", crds, order_definition(), Content_Type=JSON))
        await asyncio.sleep(0.5)
        await client.ask(target.ask("POST", f"{CUSTOM}?dryRun=All", order(0), Content_Type=JSON))
        client.transport.close()
    return each(
        target,
        target.objects,
        lambda i: target.ask("POST", CUSTOM, order(i), Content_Type=JSON),
        expected=201,
    )


async def get(target: Target) -> Run:
    chosen = random.Random(1)

    def ask(_: int) -> bytes:
        return target.ask("GET", name(chosen.randrange(target.objects)), Accept=JSON)

    return each(target, target.objects * 2, ask)


async def update(target: Target) -> Run:
    """Every pod is read beforehand and replaced with another annotation."""
    bodies = [pod(i) for i in range(target.objects // 2)]
    if not target.size:
        client = await connect(target.port, tls())
        for i in range(len(bodies)):
            _, read = await client.ask(target.ask("GET", name(i), Accept=JSON))
            bodies[i] = read.replace(b'"first"', b'"second"', 1)
        client.transport.close()
    return each(target, len(bodies), lambda i: target.ask("PUT", name(i), bodies[i], Content_Type=JSON))


def patch(content_type: str, label: str) -> Workload:
    """One label of a pod."""

    async def prepare(target: Target) -> Run:
        def ask(i: int) -> bytes:
            body = f'{{"metadata":{{"labels":{{"{label}":"{i}"}}}}}}'.encode()
            return target.ask("PATCH", name(i), body, Content_Type=content_type)

        return each(target, target.objects // 2, ask)

    return prepare


async def apply(target: Target) -> Run:
    """One annotation of a pod, by a manager that owns nothing else of it."""

    def ask(i: int) -> bytes:
        metadata = b'{"name":"pod-%06d","annotations":{"applied":"%d"}}' % (i, i)
        body = b'{"apiVersion":"v1","kind":"Pod","metadata":%b}' % metadata
        path = name(i) + "?fieldManager=bench&force=true"
        return target.ask("PATCH", path, body, Content_Type="application/apply-patch+yaml")

    return each(target, target.objects // 2, ask)


def lists(accept: str) -> Workload:
    """Lists of the whole collection. The first is not measured: it makes representations that others reuse."""

    async def prepare(target: Target) -> Run:
        def ask(_: int) -> bytes:
            return target.ask("GET", PODS, Accept=accept)

        first = await each(target, 1, ask)()
        if accept != JSON and not target.size:
            print(f"{'':10} the first {accept} after {first.seconds:.2f} s")
        return each(target, 20, ask, clients=4)

    return prepare


async def selector(target: Target) -> Run:
    """One pod in fifty, by a label."""

    def ask(i: int) -> bytes:
        return target.ask("GET", f"{PODS}?labelSelector=app%3Dapp-{i % 50}", Accept=JSON)

    return each(target, 400, ask, clients=4)


_CONTINUE = re.compile(rb'"continue":"([^"]+)"')


async def page(target: Target) -> Run:
    """The whole collection in chunks of 500."""
    chunks = -(-target.objects // 500)
    part = replace(target, size=target.size // chunks)

    async def do(client: Connection, _: int) -> tuple[int, int]:
        size, position = 0, ""
        for _ in range(chunks):
            path = f"{PODS}?limit=500{position}"
            status, body = await client.ask(part.ask("GET", path, Accept=JSON))
            size += len(body)
            if status != 200:
                return status, size
            found = _CONTINUE.search(body, 0, 1000)
            position = f"&continue={found[1].decode()}" if found else ""
        return (0 if position else 200), size

    return lambda: run(target.port, 4, 20, 200, do)


def watch(accept: str) -> Workload:
    """Many watches of one collection, and writes to it. An operation is an event delivered; the latencies
    are those of the writes."""
    return partial(_watch, accept)


async def _watch(accept: str, target: Target) -> Run:
    writes = min(500, target.objects)
    context = tls()
    version = "" if target.size else f"&resourceVersion={await _version(target)}"
    watchers = [await connect(target.port, context) for _ in range(WATCHERS)]
    waiting, done = set(watchers), asyncio.Event()

    def hear(watcher: Connection) -> Callable[[], None]:
        def heard() -> None:
            if watcher.events >= writes:
                waiting.discard(watcher)
                if not waiting:
                    done.set()

        return heard

    for watcher in watchers:
        watcher.on_events = hear(watcher)
        await watcher.ask(target.ask("GET", f"{PODS}?watch=1{version}", Accept=accept))

    def ask(i: int) -> bytes:
        body = b'{"metadata":{"annotations":{"mark":"%d as %b"}}}' % (i, accept.encode())
        return target.ask("PATCH", name(i), body, Content_Type="application/merge-patch+json")

    async def work() -> Sample:
        begin = time.perf_counter()
        sample = await each(target, writes, ask, clients=4)()
        try:
            await asyncio.wait_for(done.wait(), 60)
        except TimeoutError:
            sample.failures.append(f"{len(waiting)} watchers did not hear everything")
        sample.seconds = time.perf_counter() - begin
        sample.operations = sum(watcher.events for watcher in watchers)
        sample.bytes = sum(watcher.bytes for watcher in watchers)
        for watcher in watchers:
            watcher.transport.close()
        return sample

    return work


async def _version(target: Target) -> str:
    client = await connect(target.port, tls())
    _, body = await client.ask(target.ask("GET", PODS + "?limit=1", Accept=JSON))
    client.transport.close()
    found = re.search(rb'"resourceVersion":"(\d+)"', body)
    assert found is not None
    return found[1].decode()


async def delete(target: Target) -> Run:
    return each(target, target.objects, lambda i: target.ask("DELETE", name(i) + "?gracePeriodSeconds=0"))


WORKLOADS: dict[str, Workload] = {
    "create": create,
    "custom": custom,
    "get": get,
    "update": update,
    "patch": patch("application/merge-patch+json", "round"),
    "strategic": patch("application/strategic-merge-patch+json", "turn"),
    "apply": apply,
    "list": lists(JSON),
    "page": page,
    "protobuf": lists(PROTOBUF),
    "table": lists(TABLE),
    "metadata": lists(METADATA),
    "selector": selector,
    "watch": watch(JSON),
    "watched": watch(TABLE),
    "delete": delete,
}
