"""Helper of `kubist envtest --warm`: a process that has the server loaded and forks one for each kube-apiserver.

It listens at `warm/socket` in the folder of the assets. It forks while it has no threads, event loop or open store. It
ends when it was idle for a while, when its socket was removed or replaced, or when Kubist was updated. A server ends at
once when its client ends.
"""

from __future__ import annotations

import array
import contextlib
import gc
import marshal
import os
import select
import signal
import socket
import stat
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kubist
from kubist.testing.envtest.assets import socket_path
from kubist.testing.envtest.client import ACCEPTED, ANSWER_WAIT, HEAD_SIZE, request

IDLE = 900.0
"""Seconds without a start after which the helper ends."""
CHECK_INTERVAL = 1.0
_LONGEST_PATH = 103
"""Maximum length in bytes of a Unix socket's path that all systems accept."""


def is_running(directory: Path, identity: str) -> bool:
    """Whether a helper of this installation answers."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ANSWER_WAIT)
        try:
            connection.connect(str(socket_path(directory)))
            request(connection, [identity, None, {}, b"", 0])
            return connection.recv(1) == ACCEPTED
        except OSError:
            return False


def check_folder(directory: Path) -> None:
    """Makes the private folder of the socket. Raises ValueError if the socket cannot be in it."""
    path = socket_path(directory)
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise ValueError(f"{path} is too long for a Unix socket: choose another directory for the assets")
    path.parent.mkdir(mode=0o700, exist_ok=True)
    info = path.parent.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid() or info.st_mode & 0o077:
        raise ValueError(f"{path.parent} must be a directory that only its owner can use (mode 0700)")


def serve(directory: Path, identity: str, run: Callable[[list[str]], int], idle: float = IDLE) -> int:
    """Goes to the background when the helper listens, and forks servers for clients with the same identity until
    its end. In a forked process, calls `run` with the arguments of the server. Returns the exit code of the
    process."""
    check_folder(directory)
    gc.collect()
    gc.freeze()
    listener = _Listener(socket_path(directory))
    _detach()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # The kernel forgets ended servers.
    signal.signal(signal.SIGTERM, listener.end)
    helper = os.getpid()
    try:
        connection = listener.next_client(idle)
    finally:
        listener.close(remove=os.getpid() == helper)
    if connection is None:
        return 0
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    return _run_server(connection, identity, run)


def _detach() -> None:
    """Continues in a background process without standard streams. The process that was started ends."""
    if os.fork():
        os._exit(0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.close(nothing)


class _Listener:
    """Socket of the helper."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_ended = False
        self._program = _stamp(Path(kubist.__file__))
        draft = path.with_name(f"socket.{os.getpid()}")
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(draft))
        draft.chmod(0o600)
        self._socket.listen(128)
        self._own = _stamp(draft)
        draft.rename(path)

    def end(self, *_signal: object) -> None:
        """Ends the helper. Python ignores an exception of a signal handler that runs in a hook of os.fork. The loop
        therefore checks the attribute, too."""
        self._is_ended = True
        sys.exit(0)

    def close(self, *, remove: bool) -> None:
        self._socket.close()
        if remove and _stamp(self._path) == self._own:
            self._path.unlink()
            with contextlib.suppress(OSError):
                self._path.parent.rmdir()

    def next_client(self, idle: float) -> socket.socket | None:
        """Connection of a client, in a new process; None in the helper at its end."""
        until = time.monotonic() + idle
        while not self._is_ended and time.monotonic() < until:
            ready, _, _ = select.select([self._socket], [], [], min(CHECK_INTERVAL, idle))
            if _stamp(self._path) != self._own or _stamp(Path(kubist.__file__)) != self._program:
                return None
            if ready:
                connection, _ = self._socket.accept()
                with contextlib.suppress(OSError):
                    if os.fork() == 0:
                        return connection
                connection.close()
                until = time.monotonic() + idle
        return None


def _stamp(path: Path) -> tuple[int, int]:
    """Values that change when a file is replaced."""
    try:
        info = path.lstat()
    except OSError:
        return 0, 0
    return info.st_ino, info.st_mtime_ns


def _run_server(connection: socket.socket, identity: str, run: Callable[[list[str]], int]) -> int:
    """Takes over the client's environment and streams, and runs its server."""
    arguments = _take_over(connection, identity)
    if arguments is None:
        return 0
    threading.Thread(target=_follow, args=(connection,), daemon=True).start()
    try:
        code = run(arguments)
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    with contextlib.suppress(OSError):
        connection.send(bytes((code & 0xFF,)))
    os._exit(code)


def _take_over(connection: socket.socket, identity: str) -> list[str] | None:
    """Arguments of the client. None if it is of another installation, or asks only whether the helper runs."""
    connection.settimeout(ANSWER_WAIT)
    try:
        content, streams = _receive(connection)
        if not content or content[0] != identity:
            return None
        _, arguments, environment, directory, mask = content
        if arguments is None:
            connection.sendall(ACCEPTED)
            return None
        os.chdir(directory)
        os.umask(mask)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.environb.clear()
        os.environb.update(environment)
        time.tzset()
        connection.settimeout(None)
        connection.sendall(ACCEPTED)
    except OSError:
        return None
    sys.argv[1:] = arguments
    return [str(word) for word in arguments]


def _receive(connection: socket.socket) -> tuple[list[Any], array.array[int]]:
    streams = array.array("i")
    head, ancillary, _, _ = connection.recvmsg(HEAD_SIZE, socket.CMSG_SPACE(3 * streams.itemsize))
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            streams.frombytes(data)
    size, content = int.from_bytes(head, "big"), b""
    while len(content) < size:
        piece = connection.recv(size - len(content))
        if not piece:
            return [], streams
        content += piece
    return marshal.loads(content) if content else [], streams


def _follow(connection: socket.socket) -> None:
    """Passes on the client's signals. Ends the server when the client has ended, however it ended."""
    with contextlib.suppress(OSError):
        while number := connection.recv(1):
            os.kill(os.getpid(), number[0])
    os.kill(os.getpid(), signal.SIGKILL)
