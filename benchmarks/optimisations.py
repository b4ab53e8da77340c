"""Instructions of each optimisation in docs/architecture.md, and of the simple version of the same code.

    python benchmarks/optimisations.py             # needs valgrind; some minutes

Every pair runs the same calls in one process, and callgrind counts their instructions. Counts do not depend on the
load or the speed of the machine.
"""

from __future__ import annotations

import asyncio
import gc
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
from workloads import name, pod

ROOT = Path(__file__).parent.parent
CALLS = 50
MARK = "getloadavg"
"""C function at whose calls callgrind writes and resets its counters."""
Pair = tuple[str, Callable[..., Any], Callable[..., Any], list[tuple[Any, ...]]]
"""Name, optimised function, simple function, and the arguments of each call."""


class Connection:
    """Connection for a reader of HTTP/1.1 that drops the requests."""

    peer, peer_certificates = ("127.0.0.1", 1), ()

    def __init__(self) -> None:
        from kubist.base.http import Limits

        self.host = SimpleNamespace(limits=Limits(), now=0.0)
        self.scratch: dict[str, object] = {}
        self.deadline = 0.0

    def take(self, _request: object) -> None: ...


def pods() -> list[dict[str, Any]]:
    """Pods as they are validated: decoded, with defaults, tolerations and managed fields."""
    from kubist.api.kinds.core.pod import strategy
    from kubist.model.schema.catalog import schema_for
    from kubist.model.schema.decode import decode

    made = [decode(schema_for("", "v1", "Pod"), orjson.loads(pod(number))) for number in range(CALLS)]
    for each in made:
        strategy.default(each)
        each["spec"]["tolerations"] = [
            {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
            for key in ("not-ready", "unreachable")
        ]
        manager = {"manager": "bench", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {}}
        each["metadata"]["managedFields"] = [manager]
    return made


def transport() -> Iterator[Pair]:
    from hpack.huffman import HuffmanEncoder
    from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
    from hpack.huffman_table import decode_huffman

    from kubist.api import known_paths
    from kubist.base.eager_task import begin
    from kubist.base.http.http1.known_heads import KnownHeads
    from kubist.base.http.http1.reader import Reader
    from kubist.base.http.http2 import hpack

    class NoKnownHeads(KnownHeads):
        def add(self, data: bytes, headers: dict[str, str]) -> None: ...

    plain = Reader(Connection())  # type: ignore[arg-type]
    plain._known_heads = NoKnownHeads(0)
    sent_headers = {
        "Host": "127.0.0.1:6443", "User-Agent": "kubectl/v1.36.0 (linux/amd64) kubernetes/abcdef",
        "Accept": "application/json", "Authorization": f"Bearer {'t' * 26}", "Accept-Encoding": "gzip",
    }  # fmt: skip
    head = "".join(f"{key}: {value}\r\n" for key, value in sent_headers.items())
    sent = [(f"GET {name(number)} HTTP/1.1\r\n{head}\r\n".encode(),) for number in range(CALLS)]
    yield "http/known_heads: a request with five headers", Reader(Connection()).feed, plain.feed, sent  # type: ignore[arg-type]

    gets = [("GET", name(number), "") for number in range(CALLS)]
    yield "known_paths: the line of a get", known_paths.read, known_paths._parsed, gets
    lists = [("GET", name(0).rpartition("/")[0], "limit=500&resourceVersion=0")] * CALLS
    yield "known_paths: the line of a list", known_paths.read, known_paths._parsed, lists

    path = HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH).encode(name(0).encode())
    yield "http/hpack: the path of a request", hpack._huffman, decode_huffman, [(path,)] * CALLS
    encode: Any = hpack.encode
    headers = [(b"Cache-Control", b"no-cache, private")] * CALLS
    yield "http/hpack: a header of a response", encode, encode.__wrapped__, headers

    loop = asyncio.new_event_loop()

    async def work() -> None: ...

    def eager() -> None:
        begin(work(), loop)

    def task() -> None:
        loop.run_until_complete(work())

    yield "eager_task: a request that does not wait", eager, task, [()] * CALLS


def writes() -> Iterator[Pair]:
    from kubist.api.kinds.core.pod_validation import validate_new
    from kubist.api.kinds.core.podspec.warnings import pod_spec_warnings
    from kubist.model.meta import names, objectmeta
    from kubist.model.patch.apply import managers
    from kubist.model.patch.apply.compare import compare
    from kubist.model.patch.apply.created import creator
    from kubist.model.patch.apply.empty import empty
    from kubist.model.patch.apply.sets import Set, dotted
    from kubist.model.patch.apply.typed import type_of
    from kubist.model.patch.apply.whole import everything
    from kubist.model.schema.catalog import schema_for
    from tests.patch.apply.test_whole import plainly
    from tests.plain_validation import plain_validation

    schema = schema_for("", "v1", "Pod")
    arguments = [(made,) for made in pods()]

    def validate(made: dict[str, Any]) -> None:
        metadata = made["metadata"]
        objectmeta.validate_create(metadata, namespaced=True, validate_name=names.dns_subdomain)
        validate_new(made, allow_privileged=True)
        pod_spec_warnings(made["spec"], metadata)

    def validate_all(many: list[dict[str, Any]]) -> None:
        for made in many:
            validate(made)

    def validate_plainly(many: list[dict[str, Any]]) -> None:
        with plain_validation():
            validate_all(many)

    many = [(pods(),)]
    yield f"caching.skip_validated: {CALLS} new pods", validate_all, validate_plainly, many

    def compared(made: dict[str, Any]) -> Set:
        return managers.tracked(
            compare(type_of(schema), empty(schema), made).without(dotted("status")).changed
        )

    yield "patch/apply/created: fields of the creator", creator(schema, ("status",)), compared, arguments
    kind = type_of(schema)
    yield (
        "patch/apply/whole: field set of a pod",
        lambda made: everything(kind, made),
        lambda made: plainly(kind, made),
        arguments,
    )


def representations() -> Iterator[Pair]:
    from kubist.base.caching import bounded_cache
    from kubist.model.codec import yaml_emit

    some = [(made,) for made in pods()[:10]]
    yield "codec/yaml_emit: a pod", yaml_emit.dumps, yaml_emit._by_events, some

    def stripped(text: str) -> str:
        return text.strip()

    own, library = bounded_cache(entries=64, key_length=64)(stripped), lru_cache(64)(stripped)
    yield "caching.bounded_cache and lru_cache: a hit", own, library, [("some-name",)] * CALLS


def work() -> None:
    """Runs every pair. The output names the counters that callgrind writes."""
    count("a call that does nothing", lambda: None, [()] * CALLS)
    for pairs in (transport, writes, representations):
        for title, fast, simple, arguments in pairs():
            count(title, fast, arguments)
            count(title, simple, arguments)


def count(title: str, function: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> None:
    for each in arguments:
        function(*each)
    gc.collect()
    gc.disable()
    os.getloadavg()
    for each in arguments:
        function(*each)
    os.getloadavg()
    gc.enable()
    print(f"COUNTED {len(arguments)} {title}", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "out"
        valgrind = ["valgrind", "--tool=callgrind", f"--dump-before={MARK}", f"--callgrind-out-file={out}"]
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": path}
        command = [*valgrind, sys.executable, __file__, "--work"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        lines = [line.split(" ", 2)[1:] for line in done.stdout.splitlines() if line.startswith("COUNTED")]
        counts = []
        for place, (calls, _) in enumerate(lines):
            found = re.search(r"^(?:summary|totals): (\d+)", Path(f"{out}.{2 * place + 2}").read_text(), re.M)
            assert found is not None
            counts.append(int(found[1]) // int(calls))
    empty = counts[0]
    for (_, title), fast, simple in zip(lines[1::2], counts[1::2], counts[2::2], strict=True):
        print(
            f"{title:52} {fast - empty:>12,} {simple - empty:>12,} {(simple - empty) / (fast - empty):6.1f}x"
        )


if __name__ == "__main__":
    if sys.argv[1:] == ["--work"]:
        work()
    else:
        main()
