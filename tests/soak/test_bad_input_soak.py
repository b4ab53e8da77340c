"""Bad input, 100,000 times: documents, bytes and frames. No 500, no hang, no leak.

`KUBIST_SOAK_SEEDS` sets how often all recorded requests are mutated (18: 100,000 requests; short: 4).
`KUBIST_SOAK_RAW` sets the number of connections with mutated bytes (20,000 per protocol; short: 3,000).
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import ssl
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from kubist.base.http.messages import Response, Stream
from tests.crd.defining import define
from tests.live import TOKEN, Live, Pki
from tests.soak.sizes import Note, size
from tests.soak.soaked import descriptors, memory, serving
from tests.test_bad_input import CRD, GADGETS, bad_requests

SEEDS = size("SEEDS", 18, 4)
RAW = size("RAW", 20_000, 3_000)
AT_ONCE = 20
Make = Callable[[random.Random], bytes]
PATIENCE = 120.0

HEAD = f"Host: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n".encode()
BODY = b'{"metadata":{"name":"a","labels":{"b":"c"}},"data":{"k":"v"}}'
MAPS = b"/api/v1/namespaces/default/configmaps"
REQUESTS = (
    b"GET %b HTTP/1.1\r\n%b\r\n" % (MAPS, HEAD),
    b"GET %b?watch=1&timeoutSeconds=1&resourceVersion=0 HTTP/1.1\r\n%b\r\n" % (MAPS, HEAD),
    b"GET %b?labelSelector=a%%20in%%20(b,c)&limit=5 HTTP/1.1\r\n%b\r\n" % (MAPS, HEAD),
    b"POST %b HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n%b" % (MAPS, HEAD, len(BODY), BODY),
    b"PUT %b/a HTTP/1.1\r\n%bTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n"
    % (MAPS, HEAD, len(BODY), BODY),
    b"DELETE %b/a HTTP/1.1\r\n%bExpect: 100-continue\r\n\r\n" % (MAPS, HEAD),
)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
ODD = (
    b"\0",
    b"\r",
    b"\n",
    b"\r\n",
    b"\xff",
    b" ",
    b":",
    b"%00",
    b"%ff",
    b"%",
    b"\t",
    b"A" * 5000,
    b"-1",
    b"99999999999",
)


def spoilt(data: bytes, dice: random.Random) -> bytes:
    for _ in range(dice.choice((0, 1, 1, 2, 5))):
        at = dice.randrange(len(data) + 1)
        match dice.randrange(5):
            case 0:
                data = data[:at] + dice.choice(ODD) + data[at:]
            case 1:
                data = data[:at] + dice.choice(ODD) + data[at + 1 :]
            case 2:
                data = data[:at] + data[at + dice.randrange(20) :]
            case 3:
                data = data[:at] + data[max(0, at - dice.randrange(40)) :]
            case _:
                data = data[:at] + bytes((dice.randrange(256),)) + data[at + 1 :]
    return data


def bytes_of_requests(dice: random.Random) -> bytes:
    return b"".join(spoilt(dice.choice(REQUESTS), dice) for _ in range(dice.choice((1, 1, 2, 4))))


def bytes_of_frames(dice: random.Random) -> bytes:
    """Preface and frames. Most make some sense: headers of a request, data, settings, windows."""
    fields = b"\x82\x87\x41\x01x\x04" + bytes((len(MAPS),)) + MAPS
    fields += b"\x0f\x08" + bytes((len(TOKEN) + 7,)) + f"Bearer {TOKEN}".encode()
    data = PREFACE + frame(4, 0, 0, b"")
    for number in range(dice.randrange(1, 12)):
        stream = dice.choice((0, 1, 1, 3, 5, 2 * number + 1, dice.randrange(1 << 31)))
        payload = dice.choice(
            (fields, spoilt(fields, dice), b"", BODY, bytes(4), b"\0\0\0\5", dice.randbytes(8))
        )
        kind, flags = (
            dice.choice((0, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 77)),
            dice.choice((0, 1, 4, 5, 8, 32, 255)),
        )
        data += frame(kind, flags, stream, payload)
    return spoilt(data, dice) if dice.random() < 0.3 else data


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


FAILED = b"failed"


def kind_of(answer: bytes) -> bytes:
    """First bytes of a response. The reference responds to a few bad requests with a 500 that has a reason;
    these are no failures."""
    if b" 500 " in answer[:13] and (b"failed unexpectedly" in answer or b"\r\n\r\n{" not in answer):
        return FAILED
    return answer[:12] if answer.startswith(b"HTTP/") else answer[:4]


async def send_all(
    port: int, tls: ssl.SSLContext, make: Callable[[random.Random], bytes], count: int
) -> Counter[bytes]:
    """Sends each piece on its own connection and reads until the server closes it. Returns the first bytes of
    the responses."""
    found: Counter[bytes] = Counter()
    room = asyncio.Semaphore(AT_ONCE)

    async def send(dice: random.Random) -> None:
        async with room, asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
            data = make(dice)
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                writer.write(data)
                await writer.drain()
                # The client waits a moment without sending, then disconnects.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.3):
                        answer = await reader.read(1 << 16)
                        found[kind_of(answer)] += 1
            writer.transport.abort()

    for start in range(0, count, 1000):
        await asyncio.gather(*(send(random.Random(seed)) for seed in range(start, min(count, start + 1000))))
    return found


@pytest.mark.parametrize(("make", "protocol"), [(bytes_of_requests, "http/1.1"), (bytes_of_frames, "h2")])
def test_mutated_bytes_do_not_break_the_server(
    server_pki: Pki, tmp_path: Path, make: Make, protocol: str, note: Note
) -> None:
    tls = ssl.create_default_context(cafile=str(server_pki.path("ca.crt")))
    tls.set_alpn_protocols([protocol])
    with serving(tmp_path, server_pki) as (server, port):
        asyncio.run(send_all(port, tls, make, RAW // 10))
        pid = server.process.pid
        before = memory(pid), descriptors(pid)
        found = asyncio.run(send_all(port, tls, make, RAW))
        deadline = asyncio.run(settled(pid, before[1]))
        after = memory(pid), descriptors(pid)
        kinds = ", ".join(f"{count} {kind!r}" for kind, count in found.most_common(12))
        note(f"{RAW} connections of {protocol}; MB and descriptors {before} before, {after} after")
        note(f"answers: {kinds}")
        assert deadline, "connections are left"
        assert FAILED not in found
        assert after[0] < before[0] + 50
        assert "Traceback" not in server.output, server.output[-3000:]
        assert server.stop() == 0


async def settled(pid: int, descriptors_before: int) -> bool:
    for _ in range(600):
        if descriptors(pid) <= descriptors_before + 2:
            return True
        await asyncio.sleep(0.1)
    return False


def test_mutated_documents_do_not_break_the_server(
    server_pki: Pki, caplog: pytest.LogCaptureFixture, note: Note
) -> None:
    with Live(server_pki) as live:

        async def send(seed: int) -> tuple[int, list[str]]:
            failed, count = [], 0
            for request in bad_requests(seed):
                async with asyncio.timeout(PATIENCE):
                    answer = await live.server.api(request)
                count += 1
                if isinstance(answer, Stream):
                    answer.stopped()
                elif (
                    isinstance(answer, Response)
                    and answer.status == 500
                    and b"failed unexpectedly" in as_bytes(answer)
                ):
                    failed.append(f"{request.method} {request.path}?{request.query} {request.body[:500]!r}")
            return count, failed

        async def tasks() -> int:
            return len(asyncio.all_tasks())

        sent, sizes = 0, []
        for seed in range(1000, 1000 + SEEDS):
            if live.client.ask("GET", GADGETS).status == 404:  # some bad request deletes all CRDs
                define(live.client, CRD)
            count, failed = asyncio.run_coroutine_threadsafe(send(seed), live.loop).result(3600)
            assert failed == []
            sent += count
            gc.collect()
            sizes.append((round(memory(os.getpid())), live.run(tasks())))
    note(f"{sent} requests; MB and tasks {sizes[0]} after the first round, {sizes[-1]} after the last")
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
    third = len(sizes) // 3
    assert sizes[-1][0] < sizes[third][0] * 1.3 + 50
    assert sizes[-1][1] <= sizes[third][1] + 5


def as_bytes(answer: Response) -> bytes:
    return answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
