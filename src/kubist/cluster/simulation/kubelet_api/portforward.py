"""port-forward: SPDY streams, SPDY through a WebSocket, and WebSocket channels, each joined with a target."""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from kubist.api.request import query_values
from kubist.api.verbs.websockets import is_websocket, offered_protocols
from kubist.base import eager_task
from kubist.base.http.conversation import Conversation, Inlet
from kubist.base.http.messages import Answer, Request, Response
from kubist.base.http.spdy import Session, SpdyError, SpdyStream
from kubist.cluster.simulation.kubelet_api.pods import qualified_name
from kubist.cluster.simulation.kubelet_api.remotecommand import (
    CREATION_SECONDS,
    check_upgrade,
    decode_message,
    encode_message,
    spdy_headers,
    spdy_protocol,
)
from kubist.model.meta.object import Object

PROTOCOL = "portforward.k8s.io"
TUNNEL = f"SPDY/3.1+{PROTOCOL}"
WEBSOCKET_PROTOCOLS = ("v4.channel.k8s.io", "v4.base64.channel.k8s.io")
PORT_LIMIT = 100
"""Maximum number of ports of one WebSocket."""
CONNECT_SECONDS = 10.0
HEAD_LIMIT = 64 * 1024
PIECE = 64 * 1024
_TEXT = [(b"Content-Type", b"text/plain; charset=utf-8")]
_request_line = re.compile(rb"([A-Z]+) \S+ HTTP/1\.[01]\r?\n").match

Write = Callable[[bytes], Awaitable[None]]
PodNow = Callable[[], Object]
"""Returns the current pod, so that a change of its annotation applies to the next connection."""


def answer(request: Request, pod: PodNow, problem: str) -> tuple[Answer, Conversation | None]:
    """Upgrade of the connection. `problem` is the reason why nothing can be forwarded; empty if there is none."""
    check_upgrade(request)
    if not is_websocket(request):
        protocol = spdy_protocol(request, (PROTOCOL,))
        if isinstance(protocol, Response):
            return protocol, None
        if problem:
            return Response(400, list(_TEXT), problem.encode()), None
        forward = SpdyForward(request, pod)
        return forward.conversation.tunnel(spdy_headers(protocol), forward.received), forward.conversation
    offered = offered_protocols(request)
    ports: list[int] = []
    if TUNNEL not in offered:
        try:
            ports = _ports(request)
        except ValueError as error:
            problem = problem or str(error)
    if problem:
        return Response(400, list(_TEXT), problem.encode()), None
    if TUNNEL in offered:
        forward = SpdyForward(request, pod)
        return forward.conversation.websocket(forward.received, TUNNEL), forward.conversation
    chosen = next((name for name in offered if name in WEBSOCKET_PROTOCOLS), "")
    if offered and not chosen:
        return Response(403, []), None
    ports_forward = ChannelForward(request, pod, ports, chosen)
    return ports_forward.answer(), ports_forward.conversation


def _ports(request: Request) -> list[int]:
    """Ports of the query parameter. ValueError with the kubelet's message."""
    values = query_values(request.query, "ports")
    if not values:
        raise ValueError('query parameter "port" is required')
    texts = [text for value in values for text in value.split(",")]
    for text in texts:
        if not _is_port(text):
            raise ValueError('port "0" must be > 0' if text == "0" else _not_a_port(text[:20]))
    ports = [int(text) for text in texts]
    if len(ports) > PORT_LIMIT:
        raise ValueError(f"at most {PORT_LIMIT} ports can be forwarded at once")
    return ports


def _not_a_port(text: str) -> str:
    why = "value out of range" if text.isascii() and text.isdigit() else "invalid syntax"
    return f'unable to parse "{text}" as a port: strconv.ParseUint: parsing "{text}": {why}'


async def join(request: Request, pod: Object, port: int, inlet: Inlet, write: Write) -> str:
    """Joins a client's stream with its target until one side ends. Returns an error message, or an empty text."""
    try:
        target = target_of(pod, port, request)
        if target is None:
            return await _built_in(pod, port, inlet, write)
        return await _local(target, inlet, write)
    except TargetError as error:
        return str(error)


async def _local(target: Target, inlet: Inlet, write: Write) -> str:
    try:
        async with eager_task.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(target.host, target.port)
    except (OSError, TimeoutError) as error:
        return f"cannot connect to {target}: {error or 'timeout'}"
    up = asyncio.ensure_future(_upload(inlet, writer))
    try:
        while piece := await reader.read(PIECE):
            await write(piece)
    except ConnectionError as error:
        return f"connection to {target} failed: {error}"
    finally:
        up.cancel()
        writer.close()
    return ""


async def _upload(inlet: Inlet, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await inlet.read():
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
    except (ConnectionError, OSError):
        # The download side sees the same failure and reports it.
        return


async def _built_in(pod: Object, port: int, inlet: Inlet, write: Write) -> str:
    """Answers one HTTP request with an explanation. Other protocols get an error."""
    head = b""
    while b"\n\r\n" not in head and b"\n\n" not in head:
        piece = await inlet.read()
        head += piece
        line = _request_line(head)
        if line is None and (b"\n" in head or len(head) > HEAD_LIMIT or not piece):
            return explanation(pod, port).strip() if head else ""
        if not piece or len(head) > HEAD_LIMIT:
            break
    line = _request_line(head)
    body = explanation(pod, port).encode()
    top = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    ) % len(body)
    await write(top if line is not None and line[1] == b"HEAD" else top + body)
    return ""


def _failure(pod: Object, port: int, why: str) -> bytes:
    metadata = pod["metadata"]
    return f"error forwarding port {port} to pod {metadata['name']}, uid {metadata['uid']}: {why}".encode()


class Pair:
    """Data stream and error stream of one forwarded connection."""

    def __init__(self) -> None:
        self.data: SpdyStream | None = None
        self.error: SpdyStream | None = None
        self.timer: asyncio.TimerHandle | None = None


class SpdyForward:
    """Forwards each pair of SPDY streams. The conversation lasts until the client ends it."""

    def __init__(self, request: Request, pod: PodNow) -> None:
        self.conversation = Conversation(self._serve)
        self._request = request
        self._pod = pod
        self._session = Session(self.conversation.write, self._opened)
        self._session.on_goaway = self.conversation.cancel
        self._pairs: dict[str, Pair] = {}
        self._inlets: dict[int, Inlet] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def received(self, data: bytes) -> None:
        try:
            self._session.feed(data)
        except SpdyError:
            self.conversation.cancel()

    async def _serve(self) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            for pair in self._pairs.values():
                if pair.timer is not None:
                    pair.timer.cancel()
            for task in self._tasks:
                task.cancel()
            self._session.close()

    def _opened(self, stream: SpdyStream) -> bool:
        kind, port = stream.headers.get("streamtype", ""), stream.headers.get("port", "")
        if kind not in ("data", "error") or not _is_port(port):
            return False
        # Clients without request IDs open the error stream just before its data stream.
        default = str(stream.number if kind == "error" else stream.number - 2)
        key = stream.headers.get("requestid") or default
        pair = self._pairs.setdefault(key, Pair())
        if getattr(pair, kind) is not None:
            return False
        setattr(pair, kind, stream)
        if kind == "data":
            inlet = self._inlets[stream.number] = self.conversation.inlet()
            stream.on_data, stream.on_end = inlet.feed, inlet.end
        if pair.data is not None and pair.error is not None:
            del self._pairs[key]
            if pair.timer is not None:
                pair.timer.cancel()
            task = asyncio.ensure_future(self._forward(pair.data, pair.error, int(pair.data.headers["port"])))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            loop = asyncio.get_running_loop()
            pair.timer = loop.call_later(CREATION_SECONDS, self._expire, key)
        return True

    def _expire(self, key: str) -> None:
        """Drops half a pair whose other half did not arrive."""
        pair = self._pairs.pop(key)
        if pair.error is not None:
            pair.error.write(b"timed out waiting for streams")
            pair.error.close()
        if pair.data is not None:
            self._inlets.pop(pair.data.number).abandon()
            pair.data.reset()

    async def _forward(self, data: SpdyStream, error: SpdyStream, port: int) -> None:
        inlet = self._inlets.pop(data.number)

        async def write(piece: bytes) -> None:
            if not data.is_open:
                raise ConnectionResetError("the client closed the stream")
            data.write(piece)
            await self.conversation.drain()

        try:
            why = await join(self._request, self._pod(), port, inlet, write)
            if why:
                error.write(_failure(self._pod(), port, why))
        except ConnectionError:
            # The client closed the stream or the connection.
            return
        finally:
            inlet.abandon()
            data.close()
            error.close()


class ChannelForward:
    """Forwards ports over a WebSocket: two channels for each port, for data and for errors."""

    def __init__(self, request: Request, pod: PodNow, ports: list[int], protocol: str) -> None:
        self.conversation = Conversation(self._serve)
        self._request = request
        self._pod = pod
        self._ports = ports
        self._protocol = protocol
        self._base64 = "base64" in protocol
        self._inlets = [self.conversation.inlet() for _ in ports]

    def answer(self) -> Answer:
        return self.conversation.websocket(self._message, self._protocol, text=self._base64)

    async def _serve(self) -> None:
        for place, port in enumerate(self._ports):
            self._send(2 * place, port.to_bytes(2, "little"))
            self._send(2 * place + 1, port.to_bytes(2, "little"))
        await asyncio.gather(*(self._forward(place, port) for place, port in enumerate(self._ports)))

    async def _forward(self, place: int, port: int) -> None:
        async def write(piece: bytes) -> None:
            self._send(2 * place, piece)
            await self.conversation.drain()

        why = await join(self._request, self._pod(), port, self._inlets[place], write)
        self._inlets[place].abandon()
        if why:
            self._send(2 * place + 1, _failure(self._pod(), port, why))

    def _send(self, channel: int, data: bytes) -> None:
        self.conversation.write(encode_message(channel, data, as_text=self._base64))

    def _message(self, data: bytes) -> None:
        message = decode_message(data, as_text=self._base64)
        if message is not None and message[0] % 2 == 0 and message[0] // 2 < len(self._inlets):
            self._inlets[message[0] // 2].feed(message[1])


# Targets of port-forward and proxy: a local address that the pod's annotation names, or the built-in response

_ANNOTATION = "kubist.io/port-forward"


class Target(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class TargetError(Exception):
    """The port cannot be forwarded. The text says why and what to do."""


def target_of(pod: Object, port: int, request: Request) -> Target | None:
    """Local address of a pod's port; None if the annotation names none. Raises TargetError.

    Only loopback addresses are allowed, and only for clients on the machine of the server. Otherwise users that may
    create pods could reach services of that machine that are not open to the network.
    """
    text = (pod["metadata"].get("annotations") or {}).get(_ANNOTATION, "")
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        number, equals, address = part.partition("=")
        host, colon, local = address.strip().rpartition(":")
        if not (equals and colon and _is_port(number.strip()) and _is_port(local)):
            raise TargetError(
                f'annotation {_ANNOTATION}: "{part[:100]}" is not of the form PORT=127.0.0.1:PORT'
            )
        if int(number) == port:
            host = "127.0.0.1" if host == "localhost" else host.strip("[]")
            if not is_loopback(host):
                raise TargetError(
                    f'annotation {_ANNOTATION}: "{host}" is not a loopback address, such as 127.0.0.1'
                )
            if not is_loopback(request.peer[0]):
                raise TargetError(
                    f"annotation {_ANNOTATION} is only for clients on the machine of the server"
                )
            return Target(host, int(local))
    return None


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 65536


def is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def explanation(pod: Object, port: int) -> str:
    """Body of the built-in response."""
    return (
        f"kubist: pod {qualified_name(pod)} is simulated: nothing runs behind port {port}. "
        f"To reach a local service, annotate the pod with {_ANNOTATION}: {port}=127.0.0.1:PORT\n"
    )
