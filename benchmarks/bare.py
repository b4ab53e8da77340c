"""A bare server on Kubist's transport that answers ready-made bytes: the yardstick of `make bench`.

Every answer has the number of bytes in the request's `X-Bytes`. `?watch=1` is answered by a stream that gets an event
of that size for every PATCH.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import signal
import tempfile
from pathlib import Path

from kubist.base.http import HttpServer, server_context
from kubist.base.http.messages import Answer, Application, Request, Response, Stream, StreamWriter
from kubist.base.http.tls.certificates import new_authority, save
from kubist.base.http.tls.contexts import HTTP1, HTTP2

HEADERS = [
    (b"Audit-Id", b"9f0a2c1e-6f0d-4b7e-9a53-2f1d3c4b5a69"),
    (b"Cache-Control", b"no-cache, private"),
    (b"Content-Type", b"application/json"),
]


@functools.lru_cache(maxsize=64)
def body(size: int) -> bytes:
    return b'{"data":"%b"}\n' % (b"x" * max(0, size - 12))


@functools.lru_cache(maxsize=64)
def event(size: int) -> bytes:
    return b'{"type":"MODIFIED","object":"%b"}\n' % (b"x" * max(0, size - 33))


class Watcher:
    """Stream that receives an event for every write."""

    def __init__(self, writers: list[StreamWriter]) -> None:
        self._writers = writers

    def start(self, writer: StreamWriter) -> None:
        self._writer = writer
        self._writers.append(writer)

    def stopped(self) -> None:
        self._writers.remove(self._writer)


def application(size: int) -> Application:
    """Application that answers with this many bytes unless a request asks for another number."""
    writers: list[StreamWriter] = []

    async def answer(request: Request) -> Answer:
        wanted = int(request.headers.get("x-bytes") or size)
        if request.method == "POST":
            return Response(201, HEADERS, body(wanted))
        if request.query.startswith("watch=1"):
            watcher = Watcher(writers)
            return Stream(200, HEADERS, watcher.start, watcher.stopped)
        if request.method == "PATCH" and writers:
            told = event(wanted)
            for writer in writers:
                writer.write(told)
        return Response(200, HEADERS, body(wanted))

    return answer


async def serve(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as directory:
        context = None
        if not options.plain:
            cert, key = Path(directory, "tls.crt"), Path(directory, "tls.key")
            save(new_authority("bare").issue_server(["localhost", "127.0.0.1"]), cert, key)
            context = server_context(cert, key, alpn=HTTP1 if options.http1 else HTTP2)
        server = HttpServer(application(options.size), ssl_context=context)
        port = await server.start("127.0.0.1", options.port)
        print(f"{'http' if options.plain else 'https'}://127.0.0.1:{port}", flush=True)
        stopped = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        await stopped.wait()
        await server.stop(1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--size", type=int, default=3400)
    parser.add_argument("--plain", action="store_true", help="without TLS")
    parser.add_argument("--http1", action="store_true", help="do not offer HTTP/2")
    parser.add_argument("--asyncio", action="store_true", help="without uvloop")
    options = parser.parse_args()
    if options.asyncio:
        asyncio.run(serve(options))
    else:
        import uvloop

        uvloop.run(serve(options))


if __name__ == "__main__":
    main()
