"""Program that requests the health of a server twenty times per second on one connection, until it is
terminated.

Arguments: a port and the CA file. It prints one latency in milliseconds per line. It is a separate process, so
that it does not wait for the load generators.
"""

from __future__ import annotations

import http.client
import ssl
import sys
import threading
import time


def probe(port: int, authority: str, ended: threading.Event) -> None:
    context = ssl.create_default_context(cafile=authority)
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context)
    connection.connect()
    while not ended.wait(0.05):
        begin = time.perf_counter()
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        assert answer.read() == b"ok" and answer.status == 200
        print((time.perf_counter() - begin) * 1000)


if __name__ == "__main__":
    ended = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    probe(int(sys.argv[1]), sys.argv[2], ended)
