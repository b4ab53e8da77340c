"""A bare server on Kubist's transport that answers fixed bytes: the yardstick of `make bench`.

GET answers `--size` bytes of JSON, POST the same with 201, a path ending in `/list` answers `--list-bytes`.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import tempfile
from pathlib import Path

from kubist.http import HttpServer, server_context
from kubist.http.certificates import new_authority, save
from kubist.http.messages import Answer, Request, Response
from kubist.http.tls import HTTP1, HTTP2

HEADERS = [
    (b"Content-Type", b"application/json"),
    (b"Audit-Id", b"9f0a2c1e-6f0d-4b7e-9a53-2f1d3c4b5a69"),
    (b"Cache-Control", b"no-cache, private"),
]


def json_of(size: int) -> bytes:
    return b'{"data":"%b"}' % (b"x" * max(0, size - 11))


async def serve(options: argparse.Namespace) -> None:
    one = json_of(options.size)
    item = json_of(options.size - 1) + b","
    count = max(1, options.list_bytes // options.size)
    many = [b'{"items":[', *[item] * (count - 1), item[:-1], b"]}"]

    async def application(request: Request) -> Answer:
        if request.method == "POST":
            return Response(201, HEADERS, one)
        return Response(200, HEADERS, many if request.path.endswith("/list") else one)

    with tempfile.TemporaryDirectory() as directory:
        context = None
        if not options.plain:
            cert, key = Path(directory, "tls.crt"), Path(directory, "tls.key")
            save(new_authority("bare").issue_server(["localhost", "127.0.0.1"]), cert, key)
            context = server_context(cert, key, alpn=HTTP1 if options.http1 else HTTP2)
        server = HttpServer(application, ssl_context=context)
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
    parser.add_argument("--list-bytes", type=int, default=17_000_000)
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
