"""Cost of creates, patches and applies from request to response, in this process and without a transport.

python benchmarks/writes.py                       # CPU in microseconds each, the best of several rounds
python benchmarks/writes.py --profile create      # and which functions it goes into
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import cProfile
import gc
import pstats
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from workloads import JSON, PODS, TOKEN, name, pod

from kubist.api.config import Config
from kubist.base.http.messages import Application, Request
from kubist.server.server import Server

HEADERS = {"authorization": f"Bearer {TOKEN}", "user-agent": "bench/1.0", "accept": JSON}
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


def ask(method: str, path: str, content_type: str, body: bytes, query: str = "") -> Request:
    return Request(method, path, query, {**HEADERS, "content-type": content_type}, body)


def create(number: int, _: int) -> Request:
    return ask("POST", PODS, JSON, pod(number))


def patch(number: int, turn: int) -> Request:
    return ask("PATCH", name(number), MERGE, b'{"metadata":{"labels":{"round":"%d"}}}' % turn)


def apply(number: int, turn: int) -> Request:
    metadata = b'{"name":"pod-%06d","annotations":{"applied":"%d"}}' % (number, turn)
    body = b'{"apiVersion":"v1","kind":"Pod","metadata":%b}' % metadata
    return ask("PATCH", name(number), APPLY, body, "fieldManager=bench&force=true")


def get(number: int, _: int) -> Request:
    return Request("GET", name(number), "", HEADERS)


def delete(number: int, _: int) -> Request:
    return Request("DELETE", name(number), "gracePeriodSeconds=0", HEADERS)


WORKLOADS: dict[str, Callable[[int, int], Request]] = {
    "create": create,
    "get": get,
    "patch": patch,
    "apply": apply,
    "delete": delete,
}


async def run(api: Application, requests: list[Request], *, profile: cProfile.Profile | None = None) -> float:
    """CPU seconds for requests that are sent one after the other."""
    gc.collect()
    begin = time.process_time()
    if profile is not None:
        profile.enable()
    for request in requests:
        answer = await api(request)
        assert answer.status < 300, answer
    if profile is not None:
        profile.disable()
    return time.process_time() - begin


@contextlib.asynccontextmanager
async def serving(*, test_bench: bool = False) -> AsyncIterator[Application]:
    """A server in memory with the namespace of the workloads; its application."""
    with tempfile.TemporaryDirectory() as directory:
        tokens = Path(directory) / "tokens"
        tokens.write_text(f'{TOKEN},bench,u-bench,"system:masters"\n')
        config = Config(
            secure_port=0,
            bind_address="127.0.0.1",
            cert_dir=directory,
            token_auth_file=str(tokens),
            authorization_mode=("RBAC",),
            disable_admission_plugins=("ServiceAccount",),
            test_bench=test_bench,
        )
        server = Server(config)
        await server.start()
        space = b'{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"bench"}}'
        await run(server.api, [ask("POST", "/api/v1/namespaces", JSON, space)])
        yield server.application
        await server.stop()


async def main(objects: int, rounds: int, profiled: str) -> None:
    async with serving() as api:
        gc.freeze()
        gc.set_threshold(10_000, 20, 20)  # as `kubist apiserver` does
        best: dict[str, float] = {}
        profile = cProfile.Profile()
        for turn in range(rounds):
            for what, make in WORKLOADS.items():
                requests = [make(number, turn) for number in range(objects)]
                watched = profile if what == profiled and turn else None
                spent = await run(api, requests, profile=watched)
                best[what] = min(best.get(what, spent), spent)
    for what, spent in best.items():
        print(f"{what:8} {spent / objects * 1e6:8.1f} µs")
    if profiled:
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--objects", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--profile", default="", choices=["", *WORKLOADS])
    given = parser.parse_args()
    asyncio.run(main(given.objects, given.rounds, given.profile))
