"""The other yardstick of `make bench`: an application on uvicorn and httptools that answers ready-made bytes.

Behaves like `bare.py`, on the transport that most Python servers use.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import uvicorn
from bare import HEADERS, body, event

from kubist.base.http.tls.certificates import new_authority, save

Message = dict[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]

watchers: set[asyncio.Queue[bytes]] = set()


async def application(scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        return
    wanted = next((int(value) for name, value in scope["headers"] if name == b"x-bytes"), 3400)
    while (await receive()).get("more_body"):
        pass
    if scope["query_string"].startswith(b"watch=1"):
        await _watch(send)
        return
    if scope["method"] == "PATCH":
        for watcher in watchers:
            watcher.put_nowait(event(wanted))
    told = body(wanted)
    headers = [*HEADERS, (b"content-length", b"%d" % len(told))]
    status = 201 if scope["method"] == "POST" else 200
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": told})


async def _watch(send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": b"", "more_body": True})
    queue: asyncio.Queue[bytes] = asyncio.Queue()
    watchers.add(queue)
    try:
        while True:
            await send({"type": "http.response.body", "body": await queue.get(), "more_body": True})
    finally:
        watchers.discard(queue)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        cert, key = Path(directory, "tls.crt"), Path(directory, "tls.key")
        save(new_authority("bare").issue_server(["localhost", "127.0.0.1"]), cert, key)
        uvicorn.run(
            application,
            port=options.port,
            loop="uvloop",
            http="httptools",
            ssl_certfile=str(cert),
            ssl_keyfile=str(key),
            log_level="warning",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
        )


if __name__ == "__main__":
    main()
