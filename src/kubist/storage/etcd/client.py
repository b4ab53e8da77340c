"""gRPC client for etcd: several endpoints, bounded waits, and etcd's errors as `StoreError`s.

A call is sent only on a ready connection. After a lost connection, a call is repeated on another endpoint only
if it is safe to run twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import grpc

from kubist.storage.etcd import messages as pb
from kubist.storage.store import Compacted, FutureRevision, OpenFailed, StoreError, Unavailable

CALL_SECONDS = 5.0
CONNECT_SECONDS = 2.0
POLL_SECONDS = 0.01

_METHODS = {
    "Range": ("KV", pb.RangeResponse),
    "Put": ("KV", pb.PutResponse),
    "Txn": ("KV", pb.TxnResponse),
    "Compact": ("KV", pb.CompactionResponse),
    "LeaseGrant": ("Lease", pb.LeaseGrantResponse),
}

_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
]

# With this metadata, a member without a leader reports an error instead of waiting.
_HAS_LEADER = (("hasleader", "true"),)

_LOST = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)


class LeaseNotFound(StoreError):
    """The lease for a key has expired."""


class TooLarge(StoreError):
    """etcd rejects a request of this size."""


class Connection:
    """gRPC channel to one endpoint."""

    def __init__(self, endpoint: str, credentials: grpc.ChannelCredentials | None) -> None:
        scheme, separator, address = endpoint.rpartition("://")
        self.endpoint = endpoint
        if scheme == "https" or (not separator and credentials is not None):
            self._channel = grpc.aio.secure_channel(
                address, credentials or grpc.ssl_channel_credentials(), options=_OPTIONS
            )
        else:
            self._channel = grpc.aio.insecure_channel(address, options=_OPTIONS)
        self.methods: dict[str, Any] = {
            name: self._channel.unary_unary(
                f"/etcdserverpb.{service}/{name}",
                request_serializer=_serialize,
                response_deserializer=response.FromString,
            )
            for name, (service, response) in _METHODS.items()
        }
        self.watch: Any = self._channel.stream_stream(
            "/etcdserverpb.Watch/Watch",
            request_serializer=_serialize,
            response_deserializer=pb.WatchResponse.FromString,
        )

    async def ready(self) -> bool:
        """Whether a call can be sent now. Waits at most CONNECT_SECONDS for the connection."""
        state = self._channel.get_state(try_to_connect=True)
        waits = CONNECT_SECONDS / POLL_SECONDS
        while state is not grpc.ChannelConnectivity.READY:
            if state in (grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.SHUTDOWN):
                return False
            if (waits := waits - 1) <= 0:
                return False
            await asyncio.sleep(POLL_SECONDS)
            state = self._channel.get_state(try_to_connect=True)
        return True

    async def close(self) -> None:
        await self._channel.close(None)


class EtcdClient:
    """Endpoints of one etcd cluster. One endpoint is used until it fails."""

    def __init__(self, endpoints: list[str], credentials: grpc.ChannelCredentials | None) -> None:
        self._connections = [Connection(endpoint, credentials) for endpoint in endpoints]
        self._current = self._connections[0]

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()

    async def call(self, method: str, request: Any, *, repeatable: bool = True) -> Any:
        """One unary call. `repeatable`: the call may be sent again if its outcome is unknown."""
        for _ in self._connections:
            connection = await self._connect()
            try:
                return await connection.methods[method](request, timeout=CALL_SECONDS, metadata=_HAS_LEADER)
            except grpc.aio.AioRpcError as error:
                failure = _translate(error, connection)
                if error.code() not in _LOST:
                    raise failure from error
                self._leave(connection)
                if not repeatable and not _refused(error):
                    raise failure from error
        raise failure

    async def watch(self, key: bytes, range_end: bytes, start: int) -> AsyncGenerator[Any, None]:
        """Responses of one watch that starts at revision `start`, until it breaks."""
        connection = await self._connect()
        create = pb.WatchCreateRequest(
            key=key,
            range_end=range_end,
            start_revision=start,
            progress_notify=True,
            prev_kv=True,
            fragment=True,
        )
        stream = connection.watch(metadata=_HAS_LEADER)
        try:
            await stream.write(pb.WatchRequest(create_request=create))
            while (response := await stream.read()) is not grpc.aio.EOF:  # type: ignore[attr-defined]
                if response.canceled:
                    if response.compact_revision:
                        raise Compacted(response.compact_revision)
                    raise Unavailable(
                        f"etcd at {connection.endpoint} ended a watch: {response.cancel_reason}"
                    )
                yield response
            raise Unavailable(f"etcd at {connection.endpoint} ended a watch")
        except grpc.aio.AioRpcError as error:
            self._leave(connection)
            raise _translate(error, connection) from error
        except asyncio.InvalidStateError as error:  # grpc raises this when the stream is already closed
            self._leave(connection)
            raise Unavailable(f"etcd at {connection.endpoint} ended a watch") from error
        finally:
            stream.cancel()

    async def _connect(self) -> Connection:
        for _ in self._connections:
            connection = self._current
            if await connection.ready():
                return connection
            self._leave(connection)
        raise Unavailable(f"etcd does not answer at {', '.join(c.endpoint for c in self._connections)}")

    def _leave(self, connection: Connection) -> None:
        """Switches to the next endpoint, unless another call has already switched."""
        if self._current is connection:
            place = self._connections.index(connection) + 1
            self._current = self._connections[place % len(self._connections)]


def credentials(ca: str | None, cert: str | None, key: str | None) -> grpc.ChannelCredentials | None:
    """TLS credentials from files. None if no file is given."""
    if ca is None and cert is None and key is None:
        return None
    try:
        return grpc.ssl_channel_credentials(_read(ca), _read(key), _read(cert))
    except OSError as error:
        raise OpenFailed(f"{error.filename} cannot be read: {error.strerror}") from error


def _read(path: str | None) -> bytes | None:
    if path is None:
        return None
    with open(path, "rb") as file:
        return file.read()


def _serialize(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data


def _refused(error: grpc.aio.AioRpcError) -> bool:
    """Whether the member rejected the request without executing it."""
    return "no leader" in (error.details() or "")


def _translate(error: grpc.aio.AioRpcError, connection: Connection) -> StoreError:
    details = (error.details() or error.code().name).partition("\n")[0]
    if error.code() is grpc.StatusCode.OUT_OF_RANGE:
        # etcd does not report the revision here. Callers that need it request it.
        return Compacted(0) if "compacted" in details else FutureRevision(0)
    if "requested lease not found" in details:
        return LeaseNotFound(details)
    if "request is too large" in details or "larger than max" in details:
        return TooLarge(f"etcd takes no request as large as this: {details}")
    return Unavailable(f"etcd at {connection.endpoint} is not available: {details}")
