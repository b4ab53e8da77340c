"""A server process whose memory and latency are measured, and a client that sends raw HTTP/2 frames."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import hpack

from kubist.base.http.http2.frames import DEFAULT_WINDOW, PREFACE, Flag, Kind, frame, settings
from tests.cli.processes import Running, running
from tests.live import TOKENS, Pki

SECONDS = 2.0
"""Maximum seconds of an attack."""


@dataclass
class Harm:
    """Damage of an attack. `memory`: maximum growth of the server in bytes. `delays`: delay of each /livez
    request.

    A delay is the processor time, in seconds, that the server used between the request and its response. On an
    idle machine that is the latency. On a busy machine it still counts only the work that the attack caused.
    """

    memory: int
    delays: list[float]

    @property
    def delay(self) -> float:
        return max(self.delays)

    def __str__(self) -> str:
        median = sorted(self.delays)[len(self.delays) // 2] * 1000
        return f"{self.memory / 1e6:.1f} MB, livez {median:.0f} ms, at most {self.delay * 1000:.0f} ms"


class Victim:
    """Server process that allows anonymous requests only to /livez, like every server."""

    def __init__(self, server: Running, port: int, pki: Pki) -> None:
        self.server = server
        self.port = port
        self._authority = str(pki.path("ca.crt"))

    @property
    def memory(self) -> int:
        """Resident memory in bytes."""
        for line in Path(f"/proc/{self.server.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("the process does not tell")

    @property
    def processor_time(self) -> float:
        """Processor time of all threads of the server, in seconds."""
        tasks = Path(f"/proc/{self.server.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def connect(self, protocol: str = "http/1.1") -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=self._authority)
        context.set_alpn_protocols([protocol])
        raw = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        return context.wrap_socket(raw, server_hostname="127.0.0.1")

    def http2(self) -> H2Attacker:
        return H2Attacker(self.connect("h2"))

    def suffer(self, attack: Callable[[Victim], None]) -> Harm:
        """Runs an attack and returns its damage."""
        before = self.memory
        harm = Harm(0, [])
        ended = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(harm, before, ended))
        watcher.start()
        try:
            with contextlib.suppress(OSError):
                attack(self)
        finally:
            ended.set()
            watcher.join()
        return harm

    def _watch(self, harm: Harm, before: int, ended: threading.Event) -> None:
        """Requests /livez on one connection until the attack is over, and once more."""
        context = ssl.create_default_context(cafile=self._authority)
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=600, context=context)
        connection.connect()
        last = False
        while not last:
            last = ended.wait(0.02)
            began = self.processor_time
            connection.request("GET", "/livez")
            assert connection.getresponse().read() == b"ok"
            harm.delays.append(self.processor_time - began)
            harm.memory = max(harm.memory, self.memory - before)
        connection.close()


@contextlib.contextmanager
def victim(home: Path, pki: Pki, *flags: str) -> Iterator[Victim]:
    """Server process."""
    (home / "tokens").write_text(TOKENS)
    common = ["--secure-port=0", "--bind-address=127.0.0.1", "--token-auth-file=tokens", "--data-dir=data"]
    common += [f"--tls-cert-file={pki.path('tls.crt')}", f"--tls-private-key-file={pki.path('tls.key')}"]
    with running(home, "apiserver", *common, "--authorization-mode=RBAC", *flags) as server:
        yield Victim(server, int(server.wait_for(r"serving on 127\.0\.0\.1:(\d+)", 120)), pki)


class H2Attacker:
    """Client that sends raw HTTP/2 frames. It discards everything from the server except window updates."""

    def __init__(self, connection: ssl.SSLSocket) -> None:
        self.socket = connection
        self.encoder = hpack.Encoder()
        self.stream = -1
        self.ended = time.monotonic() + SECONDS
        self.socket.sendall(PREFACE + settings({}))
        self._buffer = b""
        self.windows: dict[int, int] = {}
        self.closed = False
        self.on_frame: Callable[[int, bytes], None] = lambda kind, payload: None

    def __enter__(self) -> H2Attacker:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    @property
    def over(self) -> bool:
        return self.closed or time.monotonic() > self.ended

    def headers(
        self, *more: tuple[str, str], method: str = "GET", path: str = "/api", end: bool = True
    ) -> bytes:
        """Frames with the headers of one request."""
        pairs = [(":method", method), (":path", path), (":scheme", "https"), (":authority", "a"), *more]
        return self.block(self.encoder.encode(pairs), end=end)

    def block(self, encoded: bytes, *, end: bool = True) -> bytes:
        self.stream += 2
        self.windows[self.stream] = DEFAULT_WINDOW
        pieces = [encoded[at : at + 16_384] for at in range(0, len(encoded), 16_384)]
        flags = [0] * (len(pieces) - 1) + [Flag.END_HEADERS]
        kinds = [Kind.HEADERS] + [Kind.CONTINUATION] * (len(pieces) - 1)
        flags[0] |= Flag.END_STREAM if end else 0
        return b"".join(frame(k, f, self.stream, p) for k, f, p in zip(kinds, flags, pieces, strict=True))

    def listen(self, seconds: float = 0.0) -> None:
        """Reads pending data: window updates and the end of the connection."""
        deadline = time.monotonic() + seconds
        while not self.closed:
            self.socket.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                data = self.socket.recv(262_144)
            except TimeoutError:
                break
            except OSError:
                data = b""
            self.closed = not data
            self._read(data)
        self.socket.settimeout(10)

    def _read(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= 9:
            end = 9 + int.from_bytes(self._buffer[:3], "big")
            if len(self._buffer) < end:
                break
            kind, stream = self._buffer[3], int.from_bytes(self._buffer[5:9], "big")
            self.on_frame(kind, self._buffer[9:end])
            if kind == Kind.WINDOW_UPDATE and stream:
                self.windows[stream] += int.from_bytes(self._buffer[9:13], "big")
            self._buffer = self._buffer[end:]
