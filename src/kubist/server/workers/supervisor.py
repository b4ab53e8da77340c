"""Supervisor of the workers: forks them, restarts those that die, and ends after all of them.

It has neither threads nor an event loop, so it can fork at any time. The port and the store sockets stay open
here while a child is restarted, so connections wait for its successor.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import logging
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kubist.api.config import Config
from kubist.base import files
from kubist.base.listening import bound
from kubist.base.terminal import fail
from kubist.errors import StartError
from kubist.server.runtime.run import STOP_GRACE, new_event_loop, start_error, stop_signals
from kubist.server.serving_tls import serving_context
from kubist.server.workers.child import Child, Peers, Pipes, Task
from kubist.server.workers.owner import run_store
from kubist.server.workers.worker import WorkerResources, work
from kubist.storage.remote.ipc import SharedRevision

log = logging.getLogger("kubist.workers")

KILL_AFTER = STOP_GRACE + 5.0
STEADY_SECONDS = 5.0
"""A child that ran at least this long is restarted at once; otherwise after a pause that doubles."""
PAUSES = (0.1, 5.0)
LONGEST_PLACE, SHORT_PLACE = 78, "/tmp"
"""The path of a Unix socket has at most 103 bytes on macOS and 107 on Linux. If the user's directory for temporary
files is longer than this, the sockets of the workers are elsewhere."""


def supervise(config: Config, announce: Callable[[int], None]) -> int:
    """Serves with `config.workers` processes until a signal stops it. Returns the exit code."""
    try:
        with contextlib.ExitStack() as stack:
            listeners = listening(config.bind_address, config.secure_port, config.workers)
            for listener in listeners:
                stack.callback(listener.close)
            serving_context(config)  # creates the certificate, and reports errors, only once
            supervisor = Supervisor(config, listeners)
            stack.callback(supervisor.close)
            return supervisor.run(announce)
    except (StartError, OSError, ValueError) as error:
        problem = start_error(error, config.bind_address, config.secure_port)
        return fail(str(problem), problem.exit_code)


class Supervisor:
    def __init__(self, config: Config, listeners: list[socket.socket]) -> None:
        self._listeners = listeners
        self._owner: Child | None = None
        self._workers: list[Child] = []
        self._starts: dict[Child, float] = {}
        """Restart times (monotonic) of children that died."""
        self._pauses: dict[Child, float] = {}
        self._served: set[Child] = set()
        """Children that were ready once. A later failure to start may be temporary, so they are restarted."""
        self._kill_after = KILL_AFTER + config.shutdown_delay_duration
        self._volatile = not config.etcd_servers and not config.data_dir
        self._stopping = False
        self._failure, self._exit_code = "", 1
        self._signals, self._signalled = socket.socketpair()
        self._sockets = [self._signals, self._signalled]
        """Sockets that `close` closes."""
        self._install_signal_handlers()
        place = tempfile.gettempdir()
        if len(os.fsencode(place)) > LONGEST_PLACE:
            place = SHORT_PLACE
        # Created after the signal handlers, so that a signal does not leave it behind.
        self._temporary = tempfile.TemporaryDirectory(prefix="kubist-", dir=place)
        self._directory = Path(self._temporary.name)
        self._make(config)

    def _make(self, config: Config) -> None:
        revision = SharedRevision()
        store = "" if config.etcd_servers else str(self._directory / "store")
        paths = [str(self._directory / f"peer-{number}") for number in range(config.workers + bool(store))]
        peers = [Peers(paths, number, self._unix(path)) for number, path in enumerate(paths)]
        if store:
            owning = functools.partial(run_store, config, self._unix(store), revision, peers[-1])
            self._owner = self._child("the store process", owning, None)
        for number, listener in enumerate(self._listeners):
            resources = WorkerResources(number == 0, listener, peers[number], store, revision)
            working = functools.partial(work, config, resources)
            self._workers.append(self._child(f"worker {number}", working, listener))

    def _child(self, name: str, task: Task, listener: socket.socket | None) -> Child:
        parent = os.getpid()

        def live(pipes: Pipes) -> StartError | None:
            for other in self._listeners:
                if other is not listener:  # otherwise its connections would wait for this process
                    other.close()
            problem = task(pipes)
            if os.getppid() != parent:  # the parent was killed and cannot clean up
                shutil.rmtree(self._directory, ignore_errors=True)
            return problem

        return Child(name, live, self._children)

    def _children(self) -> list[Child]:
        return [*self._workers, self._owner] if self._owner is not None else self._workers

    def run(self, announce: Callable[[int], None]) -> int:
        new_event_loop().close()  # loads uvloop once, before the forks
        gc.freeze()
        try:
            for stage in ([self._owner] if self._owner else [], self._workers[:1], self._workers[1:]):
                self._start_children(stage)
            if not self._stopping:
                announce(self._listeners[0].getsockname()[1])
            while not self._stopping:
                self._wait()
        finally:
            self._end()
        return fail(self._failure, self._exit_code) if self._failure else 0

    def _install_signal_handlers(self) -> None:
        for end in (self._signals, self._signalled):
            end.setblocking(False)
        signal.set_wakeup_fd(self._signalled.fileno())
        for number in stop_signals():
            signal.signal(number, lambda *_: None)

    def _start_children(self, children: list[Child]) -> None:
        """Starts these children, and waits until they are ready or the supervisor must stop."""
        if self._stopping:
            return
        for child in children:
            child.start()
        while not self._stopping and not all(child.ready for child in children):
            self._wait()

    def _wait(self, seconds: float | None = None) -> None:
        """Waits for a signal, a message of a child or its end, and handles it."""
        if self._starts:
            seconds = max(0.0, min(self._starts.values()) - time.monotonic())
        with selectors.PollSelector() as selector:
            selector.register(self._signals, selectors.EVENT_READ)
            for child in self._children():
                if child.pid:
                    selector.register(child.said, selectors.EVENT_READ, child)
            heard = [key.data for key, _ in selector.select(seconds)]
        if None in heard:
            self._signals.recv(64)
            self._stopping = True
        for child in filter(None, heard):
            if not child.listen():
                self._ended(child)
            elif child.ready:
                self._served.add(child)
        if not self._stopping:
            self._start_due()

    def _ended(self, child: Child) -> None:
        how = child.reap()
        if self._stopping:
            return
        if child not in self._served or (child is self._owner and self._volatile):
            self._failure = child.problem or f"{child.name} {how}"
            self._exit_code = child.exit_code
            self._stopping = True
            return
        if child.problem:
            how = f"failed: {child.problem}"
        log.error("%s %s: restarting it", child.name, how)
        pause = 0.0
        if time.monotonic() - child.started < STEADY_SECONDS:
            shortest, longest = PAUSES
            pause = max(shortest, min(2 * self._pauses.get(child, 0.0), longest))
        self._pauses[child] = pause
        self._starts[child] = time.monotonic() + pause

    def _start_due(self) -> None:
        now = time.monotonic()
        for child in [child for child, at in self._starts.items() if at <= now]:
            del self._starts[child]
            child.start()

    def _end(self) -> None:
        """Stops the workers, which first answer accepted requests; then the store process."""
        self._stopping = True
        for listener in self._listeners:
            listener.close()
        self._stop(self._workers)
        if self._owner is not None:
            self._stop([self._owner])

    def _stop(self, children: list[Child]) -> None:
        for child in children:
            child.stop()
        deadline = time.monotonic() + self._kill_after
        self._starts.clear()
        while any(child.pid for child in children) and (left := deadline - time.monotonic()) > 0:
            self._wait(left)
        for child in children:
            if child.pid:
                log.error("%s does not end: killing it", child.name)
                child.kill()
                child.reap()

    def _unix(self, path: str) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._sockets.append(sock)
        sock.bind(path)
        os.chmod(path, files.FILE_MODE)
        sock.listen(128)
        return sock

    def close(self) -> None:
        """Closes all sockets but the listeners, and removes the directory."""
        signal.set_wakeup_fd(-1)
        for sock in self._sockets:
            sock.close()
        self._temporary.cleanup()


def listening(address: str, port: int, count: int) -> list[socket.socket]:
    """One bound socket per worker. Raises OSError if the port is taken."""
    first = bound(address, port)
    if sys.platform != "linux":  # elsewhere SO_REUSEPORT does not distribute connections
        return [first, *(first.dup() for _ in range(count - 1))]
    # Binds without SO_REUSEPORT first, because with it alone another server's port could be shared by
    # mistake.
    port = first.getsockname()[1]
    first.close()
    return [bound(address, port, shared=True) for _ in range(count)]
