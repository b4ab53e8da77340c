"""Hand-written protocols compared with libraries: JWT (PyJWT), the HTTP client (httpx, aiohttp), WebSocket frames
(wsproto).

Each line compares the best of several runs in one process. `docs/architecture.md` names the figures.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
import timeit
from collections.abc import Awaitable, Callable

import aiohttp
import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from wsproto import ConnectionType
from wsproto.connection import Connection
from wsproto.events import TextMessage

from kubist import Server
from kubist.api.filters.authentication.authentication import TokenError
from kubist.api.filters.authentication.tokens import TokenSigner
from kubist.base.http import websocket
from kubist.base.http.client import calls
from kubist.base.http.client.pool import Pool

REPEATS = 7


def best(work: Callable[[], object], number: int) -> float:
    """Seconds of one call."""
    return min(timeit.repeat(work, number=number, repeat=REPEATS)) / number


def line(name: str, own: float, **others: float) -> None:
    told = ", ".join(f"{other} {taken * 1e6:.0f} µs ({taken / own:.1f}x)" for other, taken in others.items())
    print(f"{name}: own {own * 1e6:.0f} µs, {told}")


def tokens() -> None:
    signer = TokenSigner(rsa.generate_private_key(65537, 2048), ["https://issuer"])
    key, reader = signer.key.public_key(), jwt.PyJWS(algorithms=["RS256"])
    good = signer.sign({"sub": "system:serviceaccount:a:b", "exp": time.time() + 9999})
    header, _, _ = good.split(".")
    long = f"{header}.{'A' * 999_996}.{'A' * 342}"

    def own(token: str) -> None:
        with contextlib.suppress(TokenError):
            signer.keys.claims(token)

    def library(token: str) -> None:
        with contextlib.suppress(jwt.InvalidTokenError):
            reader.decode_complete(token, key, ["RS256"])  # type: ignore[arg-type]

    line("JWT, verify", best(lambda: own(good), 200), PyJWT=best(lambda: library(good), 200))
    line("JWT, refuse 1 MB", best(lambda: own(long), 5), PyJWT=best(lambda: library(long), 5))


def frames() -> None:
    event = b'{"type":"MODIFIED","object":{%b}}\n' % (b'"a":"b",' * 120)
    text = event.decode()
    server = Connection(ConnectionType.SERVER)
    own = best(lambda: websocket._frame(0x81, event), 5000)
    line("WebSocket, send 1 KB", own, wsproto=best(lambda: server.send(TextMessage(data=text)), 5000))


async def fastest(work: Callable[[], Awaitable[object]], number: int) -> float:
    taken = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        for _ in range(number):
            await work()
        taken.append(time.perf_counter() - begun)
    return min(taken) / number


async def compare_clients() -> None:
    with Server() as server:
        context = ssl.create_default_context(cafile=str(server.ca))
        url, token = f"{server.url}/version", f"Bearer {server.token}"
        headers, pool = {"Authorization": token}, Pool()
        own = await fastest(
            lambda: calls.get(url, context=context, timeout=5, headers=headers, pool=pool), 200
        )
        await pool.close()
        async with httpx.AsyncClient(verify=context, headers=headers) as one:
            by_httpx = await fastest(lambda: one.get(url), 200)

        async def read() -> None:
            async with two.get(url, ssl=context, headers=headers) as answer:
                await answer.read()

        async with aiohttp.ClientSession() as two:
            by_aiohttp = await fastest(read, 200)
        line("HTTPS call, kept connection", own, httpx=by_httpx, aiohttp=by_aiohttp)


if __name__ == "__main__":
    tokens()
    frames()
    asyncio.run(compare_clients())
