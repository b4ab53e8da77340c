"""HTTP/2 client for tests, on the `h2` package, with one socket and no threads."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import cast

import h2.config
import h2.connection
import h2.events
import h2.settings

from kubist.base.http.tls.certificates import Pair
from tests.http.serving import Serving

Pairs = list[tuple[str, str]]
RawFrame = tuple[int, int, bytes]


def frames_in(data: bytes) -> list[RawFrame]:
    """Frames of `data` as type, stream and payload."""
    frames = []
    while len(data) >= 9:
        end = 9 + int.from_bytes(data[:3], "big")
        frames.append((data[3], int.from_bytes(data[5:9], "big"), data[9:end]))
        data = data[end:]
    return frames


@dataclass
class Reply:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    informational: list[int] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    ended: bool = False
    reset: int | None = None


def headers_of(
    event: h2.events.ResponseReceived | h2.events.InformationalResponseReceived,
) -> dict[str, str]:
    """Headers of an event of a connection with a `header_encoding`, which makes strings of them."""
    return dict(cast("list[tuple[str, str]]", event.headers))


class H2Client:
    def __init__(
        self,
        serving: Serving,
        *,
        window: int | None = None,
        acknowledge: bool = True,
        certificate: Pair | None = None,
    ) -> None:
        assert serving.pki is not None
        self.socket = serving.socket(serving.pki.client(alpn=("h2",), certificate=certificate))
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.acknowledge = acknowledge
        self.replies: dict[int, Reply] = defaultdict(Reply)
        self.goaway: int | None = None
        self.pongs: list[bytes] = []
        self.closed = False
        if window is not None:
            initial = {h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window}
            self.h2.local_settings = h2.settings.Settings(client=True, initial_values=initial)
        self.h2.initiate_connection()
        self.flush()

    def __enter__(self) -> H2Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def flush(self) -> None:
        if data := self.h2.data_to_send():
            self.socket.sendall(data)

    def send(self, method: str, path: str, body: bytes | None = None, extra: Pairs | None = None) -> int:
        """Starts a request and returns its stream. A body larger than the windows is sent as they open."""
        stream = self.h2.get_next_available_stream_id()
        headers = [(":method", method), (":path", path), (":scheme", "https"), (":authority", "localhost")]
        self.h2.send_headers(stream, headers + (extra or []), end_stream=body is None)
        self.flush()
        if body is not None:
            self.upload(stream, body)
        return stream

    def upload(self, stream: int, body: bytes) -> None:
        while body and self.replies[stream].reset is None and not self.replies[stream].ended:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size, len(body))
            if room <= 0:
                self.receive()
                continue
            self.h2.send_data(stream, body[:room])
            body = body[room:]
            self.flush()
        if self.replies[stream].reset is None and not body:
            self.h2.end_stream(stream)
            self.flush()

    def receive(self) -> None:
        data = self.socket.recv(262144)
        if not data:
            self.closed = True
            return
        for event in self.h2.receive_data(data):
            self._on(event)
        self.flush()

    def _on(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.ResponseReceived):
            reply = self.replies[event.stream_id]
            reply.headers = headers_of(event)
            reply.status = int(reply.headers[":status"])
        elif isinstance(event, h2.events.InformationalResponseReceived):
            self.replies[event.stream_id].informational.append(int(headers_of(event)[":status"]))
        elif isinstance(event, h2.events.DataReceived):
            self.replies[event.stream_id].body += event.data
            if self.acknowledge and event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            self.replies[event.stream_id].ended = True
        elif isinstance(event, h2.events.StreamReset):
            self.replies[event.stream_id].reset = int(event.error_code)
        elif isinstance(event, h2.events.ConnectionTerminated):
            assert event.error_code is not None
            self.goaway = int(event.error_code)
        elif isinstance(event, h2.events.PingAckReceived):
            self.pongs.append(event.ping_data)

    def wait(self, condition: object, seconds: float = 60) -> None:
        assert callable(condition)
        deadline = time.monotonic() + seconds
        while not condition():
            assert not self.closed and time.monotonic() < deadline, "it did not happen"
            self.receive()

    def finish(self, stream: int) -> Reply:
        reply = self.replies[stream]
        self.wait(lambda: reply.ended or reply.reset is not None)
        return reply

    def ask(self, method: str, path: str, body: bytes | None = None, extra: Pairs | None = None) -> Reply:
        return self.finish(self.send(method, path, body, extra))

    def hear_out(self) -> None:
        """Reads until the server closes."""
        try:
            while not self.closed:
                self.receive()
        except OSError:
            self.closed = True
