"""Client of the helper of `kubist envtest --warm`, which forks servers that have everything loaded.

The client stays the process that test libraries see: it passes its arguments, environment and standard streams to the
server, forwards signals, and ends with the server's exit code. Runs before every server, so it imports nothing but C
modules.
"""

import _socket
import marshal
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from types import FrameType
    from typing import Any
else:
    import _signal

ACCEPTED = b"k"
"""First byte from the server. After it the client does not start a server itself."""
ANSWER_WAIT = 5.0
FORWARDED = (_signal.SIGTERM, _signal.SIGINT)
HEAD_SIZE = 8


def run(path: str, identity: str, arguments: "list[str]") -> "int | None":
    """Runs a server of the helper at a socket. Returns its exit code; None without a helper of this
    installation."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(ANSWER_WAIT)
        connection.connect(path)
        mask = posix.umask(0o077)
        posix.umask(mask)
        request(connection, [identity, arguments, posix.environ, posix.getcwdb(), mask])
        accepted = connection.recv(1) == ACCEPTED
    except OSError:
        accepted = False
    code = _wait(connection) if accepted else None
    connection.close()
    return code


def request(connection: _socket.socket, content: "list[Any]") -> None:
    """Sends a request: the standard streams, the size of the content, and the content."""
    data = marshal.dumps(content)
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    head = len(data).to_bytes(HEAD_SIZE, "big")
    connection.sendmsg([head], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    connection.sendall(data)


def _wait(connection: _socket.socket) -> int:
    forwarded: list[int] = []

    def forward(number: int, _: "FrameType | None") -> None:
        forwarded.append(number)
        try:  # noqa: SIM105  `contextlib` takes time to load.
            connection.send(bytes((number,)))
        except OSError:
            pass  # The server has ended already.

    for number in FORWARDED:
        _signal.signal(number, forward)
    connection.settimeout(None)
    try:
        code = connection.recv(1)
    except OSError:
        code = b""
    if code:
        return code[0]
    if forwarded:  # The signal ended the server before it could handle it.
        _signal.signal(forwarded[0], _signal.SIG_DFL)
        posix.kill(posix.getpid(), forwarded[0])
    print("kube-apiserver: the server ended unexpectedly", file=sys.stderr)
    return 1
