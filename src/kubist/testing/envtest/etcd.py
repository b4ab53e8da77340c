"""Stand-in of etcd: takes etcd's flags, answers health checks, and stores nothing.

The kube-apiserver of the same assets recognizes it by the answer to /version and keeps all objects in memory. Runs
before every test suite, so it imports nothing but C modules.
"""

import _socket
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

VERSION = "3.6.0"
MARK = b'"standIn":"kubist"'
DEFAULT_URL = "http://localhost:2379"

SWITCHES = frozenset(
    """
    auto-tls client-cert-auth debug enable-grpc-gateway enable-log-rotation enable-pprof enable-v2
    experimental-compact-hash-check-enabled experimental-distributed-tracing experimental-enable-distributed-tracing
    experimental-enable-lease-checkpoint experimental-enable-lease-checkpoint-persist
    experimental-initial-corrupt-check experimental-memory-mlock experimental-peer-skip-client-san-verification
    experimental-stop-grpc-service-on-defrag experimental-txn-mode-write-with-shared-buffer force-new-cluster
    initial-election-tick-advance peer-auto-tls peer-client-cert-auth peer-skip-client-san-verification pre-vote
    socket-reuse-address socket-reuse-port strict-reconfig-check unsafe-no-fsync version
    """.split()  # noqa: SIM905
)
"""Flags without a value, or with one after `=`."""
SETTINGS = frozenset(
    """
    advertise-client-urls auth-token auth-token-ttl auto-compaction-mode auto-compaction-retention
    backend-batch-interval backend-batch-limit bcrypt-cost cert-file cipher-suites client-cert-allowed-hostname
    client-cert-file client-crl-file client-key-file compact-hash-check-time compaction-batch-limit
    compaction-sleep-interval config-file corrupt-check-time cors data-dir discovery discovery-endpoints
    discovery-fallback discovery-proxy discovery-srv discovery-srv-name distributed-tracing-address downgrade-check-time
    election-timeout experimental-backend-bbolt-freelist-type experimental-bootstrap-defrag-threshold-megabytes
    experimental-compact-hash-check-time experimental-compaction-batch-limit experimental-compaction-sleep-interval
    experimental-corrupt-check-time experimental-max-learners experimental-warning-apply-duration
    experimental-warning-unary-request-duration experimental-watch-progress-notify-interval feature-gates
    grpc-keepalive-interval grpc-keepalive-min-time grpc-keepalive-timeout heartbeat-interval host-whitelist
    initial-advertise-peer-urls initial-cluster initial-cluster-state initial-cluster-token key-file
    listen-client-http-urls listen-client-urls listen-metrics-urls listen-peer-urls local-address log-format log-level
    log-outputs log-rotation-config-json logger max-concurrent-streams max-learners max-request-bytes max-snapshots
    max-txn-ops max-wals metrics name peer-cert-allowed-cn peer-cert-allowed-hostname peer-cert-file
    peer-client-cert-file peer-client-key-file peer-crl-file peer-key-file peer-trusted-ca-file proxy
    quota-backend-bytes snapshot-catchup-entries snapshot-count tls-max-version tls-min-version trusted-ca-file
    v2-deprecation wal-dir warning-apply-duration warning-unary-request-duration watch-progress-notify-interval
    """.split()  # noqa: SIM905
)
"""Flags with a value, after `=` or as the next word."""

USAGE = """\
Stand-in of etcd for the tests of controllers: it answers health checks and stores nothing.
The kube-apiserver next to it keeps all objects in memory.

Usage:
  etcd [flags]

It listens at --listen-client-urls. All other flags of etcd are accepted and have no effect:
"""


class FlagError(Exception):
    """Invalid command line."""


def main(arguments: "list[str]") -> int:
    try:
        flags = parse(arguments)
        if "help" in flags:
            print(usage(), end="")
            return 0
        if flags.get("version", "false") != "false":
            print(f"etcd Version: {VERSION} (stand-in of Kubist)")
            return 0
        listeners = [listen(url) for url in flags.get("listen-client-urls", DEFAULT_URL).split(",")]
    except (FlagError, OSError, ValueError) as error:
        print(f"etcd (stand-in of Kubist): {error}", file=sys.stderr)
        return 2 if isinstance(error, FlagError) else 1
    try:
        serve(listeners)
    except KeyboardInterrupt:
        return 130


def usage() -> str:
    return USAGE + "".join(f"  --{name}\n" for name in sorted(SWITCHES | SETTINGS))


def parse(arguments: "Iterable[str]") -> "dict[str, str]":
    """Values of the flags, by the rules of Go's `flag` package: one dash or two, value after `=` or a space."""
    flags: dict[str, str] = {}
    rest = iter(arguments)
    for word in rest:
        if not word.startswith("-") or word in ("-", "--"):
            raise FlagError(f"unexpected argument {word!r}: this command takes flags only")
        name, equals, value = word[2 if word.startswith("--") else 1 :].partition("=")
        if name in ("h", "help"):
            flags["help"] = "true"
        elif name in SWITCHES:
            flags[name] = value if equals else "true"
        elif name in SETTINGS or name.startswith("experimental-"):
            following = value if equals else next(rest, None)
            if following is None:
                raise FlagError(f"flag needs an argument: -{name}")
            flags[name] = following
        else:
            raise FlagError(f"flag provided but not defined: -{name}")
    return flags


def listen(url: str) -> _socket.socket:
    """Listening socket at a URL such as `http://127.0.0.1:2379`."""
    scheme, separator, address = url.strip().partition("://")
    host, colon, port = address.rstrip("/").rpartition(":")
    if not separator or not colon or not port.isdigit():
        raise ValueError(f'--listen-client-urls: "{url}" is not a URL with a port')
    if scheme != "http":
        raise ValueError(f'--listen-client-urls: "{url}": the stand-in serves http only')
    addresses = _socket.getaddrinfo(host.strip("[]"), int(port), 0, _socket.SOCK_STREAM)
    family, kind, protocol, _, where = min(addresses, key=lambda one: one[0] != _socket.AF_INET)
    listener = _socket.socket(family, kind, protocol)
    listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
    try:
        listener.bind(where)
    except OSError as error:
        raise OSError(f"cannot listen at {url}: {error.strerror}") from None
    listener.listen(128)
    return listener


def serve(listeners: "list[_socket.socket]") -> "NoReturn":
    """Answers one connection after the other, forever."""
    poll = select.poll()
    by_number = {listener.fileno(): listener for listener in listeners}
    for number in by_number:
        poll.register(number, select.POLLIN)
    while True:
        for number, _ in poll.poll():
            try:
                descriptor, _ = by_number[number]._accept()  # type: ignore[attr-defined]
            except OSError:
                continue
            connection = _socket.socket(fileno=descriptor)
            try:
                connection.settimeout(1.0)
                answer(connection)
            except OSError:
                pass
            finally:
                connection.close()


def answer(connection: _socket.socket) -> None:
    received = b""
    while b"\r\n\r\n" not in received and len(received) < 1 << 14:
        piece = connection.recv(1 << 14)
        if not piece:
            return
        received += piece
    words = received.split(None, 2)
    path = words[1].partition(b"?")[0] if len(words) > 1 else b""
    status, body = RESPONSES.get(path, (b"404 Not Found", b"404 page not found\n"))
    kind = b"application/json" if body.startswith(b"{") else b"text/plain; charset=utf-8"
    head = b"HTTP/1.1 %b\r\nContent-Type: %b\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    connection.sendall(head % (status, kind, len(body)) + (b"" if words[:1] == [b"HEAD"] else body))


_OK = b"200 OK"
RESPONSES = {
    b"/health": (_OK, b'{"health":"true","reason":""}'),
    b"/livez": (_OK, b"ok\n"),
    b"/readyz": (_OK, b"ok\n"),
    b"/version": (
        _OK,
        b'{"etcdserver":"%b","etcdcluster":"%b",%b}' % (VERSION.encode(), VERSION.encode(), MARK),
    ),
}
