"""Streams of exec and attach over WebSocket channels and over SPDY, with the protocol versions of a kubelet."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kubist.api.request import truthy
from kubist.api.verbs.websockets import is_websocket, offered_protocols
from kubist.base.http.conversation import Conversation, Inlet
from kubist.base.http.messages import Answer, Request, Response
from kubist.base.http.spdy import Session, SpdyError, SpdyStream
from kubist.cluster.simulation.shell.container import Io
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError, bad_request, internal_error

CREATION_SECONDS = 30.0
"""Seconds that a SPDY client has to open its streams."""
LINGER_SECONDS = 5.0
"""Seconds that a SPDY client has to close the connection after the result."""
FIRST_MESSAGE_SECONDS = 0.02
"""Seconds from the upgrade to the first message of version 5. client-go begins to read before its streams exist, and
discards the messages that it reads by then."""
V5 = "v5.channel.k8s.io"
WEBSOCKET_PROTOCOLS = (
    V5,
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
    "channel.k8s.io",
    "base64.channel.k8s.io",
)
SPDY_PROTOCOLS = ("v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
SPDY = "SPDY/3.1"
STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)
_CLOSE = 255
"""Channel of version 5 whose message names a channel that the client closes."""
_NAMES = {STDIN: "stdin", STDOUT: "stdout", STDERR: "stderr", ERROR: "error", RESIZE: "resize"}
_TEXT = [(b"Content-Type", b"text/plain; charset=utf-8"), (b"X-Content-Type-Options", b"nosniff")]

Run = Callable[[Io], Awaitable[Object]]
"""Runs the command on its streams. Returns the Status for the error channel."""

SUCCESS: Object = {"metadata": {}, "status": "Success"}


def exit_status(code: int) -> Object:
    """Status of a command that ended."""
    if code == 0:
        return SUCCESS
    message = f"command terminated with non-zero exit code: command terminated with exit code {code}"
    return {
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


@dataclass(frozen=True, slots=True)
class Wanted:
    """Streams that the client requests."""

    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool

    @classmethod
    def of(cls, query: dict[str, str]) -> Wanted:
        flags = [truthy(query.get(name)) for name in ("stdin", "stdout", "stderr", "tty")]
        stdin, stdout, stderr, tty = flags
        return cls(stdin, stdout, stderr and not tty, tty)


def is_spdy(request: Request) -> bool:
    headers = request.headers
    upgrades = "upgrade" in headers.get("connection", "").lower()
    return upgrades and SPDY.lower() in headers.get("upgrade", "").lower()


def check_upgrade(request: Request) -> None:
    """Rejects a request that does not upgrade the connection to WebSocket or SPDY."""
    upgrades = "upgrade" in request.headers.get("connection", "").lower() and "upgrade" in request.headers
    if not upgrades or request.http_version != "1.1":
        raise bad_request("Upgrade request required")
    if not is_websocket(request) and not is_spdy(request):
        raise bad_request("unable to upgrade: missing upgrade headers in request")


def answer(request: Request, options: Wanted, problem: str, run: Run) -> tuple[Answer, Conversation | None]:
    """Upgrade of the connection. `problem` is the reason why the command cannot start; empty if it can."""
    check_upgrade(request)
    if not problem and not (options.stdin or options.stdout or options.stderr):
        problem = "you must specify at least 1 of stdin, stdout, stderr"
    if is_websocket(request):
        offered = offered_protocols(request)
        chosen = V5 if V5 in offered else next((name for name in offered if name in WEBSOCKET_PROTOCOLS), "")
        if chosen == V5 and problem:
            status = internal_error(f"unable to upgrade connection: {problem}").status()
            run = _always(status)
        elif problem:
            return Response(400, list(_TEXT), problem.encode()), None
        elif offered and not chosen:
            return Response(403, []), None
        command = WebSocketCommand(options, chosen, run)
        return command.answer(), command.conversation
    if problem:
        return Response(400, list(_TEXT), problem.encode()), None
    return _spdy_answer(request, options, run)


def _always(status: Object) -> Run:
    async def run(_: Io) -> Object:
        return {key: value for key, value in status.items() if key not in ("kind", "apiVersion")}

    return run


def spdy_protocol(request: Request, served: tuple[str, ...]) -> str | Response:
    """Stream protocol of a SPDY request, empty if the client names none; else the refusal."""
    values = request.header_values("x-stream-protocol-version")
    offered = [name.strip() for value in values for name in value.split(",") if name.strip()]
    chosen = next((name for name in offered if name in served), "")
    if offered and not chosen:
        headers = [(b"X-Accepted-Stream-Protocol-Versions", name.encode()) for name in served]
        accepts = f"client supports {offered}, server accepts {list(served)}".replace(",", "").replace(
            "'", ""
        )
        return Response(
            403, [*headers, *_TEXT], f"unable to upgrade: unable to negotiate protocol: {accepts}".encode()
        )
    return chosen


def spdy_headers(protocol: str) -> list[tuple[bytes, bytes]]:
    headers = [(b"Connection", b"Upgrade"), (b"Upgrade", SPDY.encode())]
    return [*headers, (b"X-Stream-Protocol-Version", protocol.encode())] if protocol else headers


def _spdy_answer(request: Request, options: Wanted, run: Run) -> tuple[Answer, Conversation | None]:
    protocol = spdy_protocol(request, SPDY_PROTOCOLS)
    if isinstance(protocol, Response):
        return protocol, None
    command = SpdyCommand(options, protocol or SPDY_PROTOCOLS[-1], run)
    return command.conversation.tunnel(spdy_headers(protocol), command.received), command.conversation


def result(status: Object, *, as_json: bool) -> bytes:
    """Content of the error channel. Versions before 4 send only the message of a failure."""
    if as_json:
        return json.dumps(status, separators=(",", ":")).encode()
    return b"" if status["status"] == "Success" else str(status.get("message", "")).encode()


class WebSocketCommand:
    """Command whose streams are channels of a WebSocket: the first byte of each message is the channel."""

    def __init__(self, options: Wanted, protocol: str, run: Run) -> None:
        self.conversation = Conversation(self._serve, outlives_client=True)
        self._options = options
        self._protocol = protocol
        self._run = run
        self._base64 = "base64" in protocol
        self._stdin: Inlet | None = self.conversation.inlet() if options.stdin else None

    def answer(self) -> Answer:
        return self.conversation.websocket(self._message, self._protocol, text=self._base64)

    async def _serve(self) -> None:
        options = self._options
        if self._protocol == V5:
            await asyncio.sleep(FIRST_MESSAGE_SECONDS)
        first = STDOUT if options.stdout else STDERR if options.stderr else ERROR
        self._send(first, b"")
        status = await self._run(self)
        as_json = self._protocol.startswith(("v4.", "v5."))
        if text := result(status, as_json=as_json):
            self._send(ERROR, text)

    def _message(self, data: bytes) -> None:
        message = decode_message(data, as_text=self._base64)
        if message is None or self._stdin is None:
            return
        channel, payload = message
        if self._protocol == V5 and channel == _CLOSE:
            if payload == bytes([STDIN]):
                self._stdin.end()
        elif channel == STDIN:
            self._stdin.feed(payload)

    def _send(self, channel: int, data: bytes) -> None:
        self.conversation.write(encode_message(channel, data, as_text=self._base64))

    async def read(self) -> bytes:
        return await self._stdin.read() if self._stdin is not None else b""

    async def write(self, data: bytes, *, error: bool = False) -> None:
        is_error = error and not self._options.tty
        if data and (self._options.stderr if is_error else self._options.stdout):
            self._send(STDERR if is_error else STDOUT, data)
        await self.conversation.drain()


class SpdyCommand:
    """Command whose streams are SPDY streams; the header `streamType` names each."""

    def __init__(self, options: Wanted, protocol: str, run: Run) -> None:
        self.conversation = Conversation(self._serve, outlives_client=True)
        self._protocol = protocol
        self._run = run
        self._options = options
        self._session = Session(self.conversation.write, self._opened)
        self._session.on_goaway = self._check
        names = {name for name, flag in self._flags().items() if flag}
        self._missing = names
        self._streams: dict[str, SpdyStream] = {}
        self._stdin = self.conversation.inlet()
        self._complete = asyncio.Event()

    def _flags(self) -> dict[str, bool]:
        options = self._options
        resizes = options.tty and self._protocol.startswith(("v3.", "v4."))
        return {
            "error": True,
            "stdin": options.stdin,
            "stdout": options.stdout,
            "stderr": options.stderr,
            "resize": resizes,
        }

    def received(self, data: bytes) -> None:
        try:
            self._session.feed(data)
        except SpdyError:
            self.conversation.cancel()

    def _opened(self, stream: SpdyStream) -> bool:
        name = stream.headers.get("streamtype", "")
        if name not in _NAMES.values() or name in self._streams:
            return False
        self._streams[name] = stream
        if name == "stdin":
            stream.on_data, stream.on_end = self._stdin.feed, self._stdin.end
        self._missing.discard(name)
        if not self._missing:
            self._complete.set()
        return True

    def _check(self) -> None:
        """Ends a command whose client leaves before all streams are open."""
        if self._missing:
            self.conversation.cancel()

    async def _serve(self) -> None:
        try:
            await asyncio.wait_for(self._complete.wait(), CREATION_SECONDS)
        except TimeoutError:
            return
        if not self._options.stdin:
            self._stdin.end()
        status = await self._run(self)
        self._streams["error"].write(result(status, as_json=self._protocol.startswith("v4.")))
        for name in ("stdout", "stderr", "error"):
            if name in self._streams:
                self._streams[name].close()
        self._stdin.abandon()
        self._session.close()
        if not self.conversation.ended:
            # Closing while the client still sends would discard the result, so the client closes first.
            await asyncio.sleep(LINGER_SECONDS)

    async def read(self) -> bytes:
        return await self._stdin.read()

    async def write(self, data: bytes, *, error: bool = False) -> None:
        name = "stderr" if error and not self._options.tty else "stdout"
        if name in self._streams:
            self._streams[name].write(data)
        await self.conversation.drain()


def failure(error: Exception | str) -> Object:
    """Status of a command that could not run."""
    api_error = error if isinstance(error, APIError) else internal_error(str(error))
    return {key: value for key, value in api_error.status().items() if key not in ("kind", "apiVersion")}


# Messages of the WebSocket protocols


def encode_message(channel: int, data: bytes, *, as_text: bool) -> bytes:
    """Message of the WebSocket protocols `channel.k8s.io`: a channel number, then data. The base64 forms are text."""
    if as_text:
        return bytes([ord("0") + channel]) + base64.b64encode(data)
    return bytes([channel]) + data


def decode_message(message: bytes, *, as_text: bool) -> tuple[int, bytes] | None:
    """Channel and data of a message; None if it is empty or malformed, because a kubelet ignores such messages."""
    if not message:
        return None
    if not as_text:
        return message[0], message[1:]
    try:
        return message[0] - ord("0"), base64.b64decode(message[1:], validate=True)
    except (binascii.Error, ValueError):
        return None
