"""Runs a server until SIGINT, SIGTERM or SIGHUP. A failure is an error for users."""

from __future__ import annotations

import asyncio
import errno
import gc
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kubist.errors import InvalidSettings, PortInUse, StartError
from kubist.storage.store import StoreError

if TYPE_CHECKING:
    from kubist.server.server import Server

STOP_GRACE = 10.0


def attempt(
    make: Callable[[], Server], announce: Callable[[int], None], sock: socket.socket | None = None
) -> StartError | None:
    """Starts the server from `make`, calls `announce` with its port, and stops on a signal. Returns the error if it
    failed. `sock`: bound socket of the server."""
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(_serve(make, announce, sock))
    except (StartError, StoreError, ValueError, OSError) as error:
        return start_error(error)
    except KeyboardInterrupt:
        pass
    return None


def explain(error: OSError) -> str:
    """Error of the operating system as one line with the file name."""
    if error.errno in (errno.EEXIST, errno.ENOTDIR) and error.filename:
        path = Path(error.filename)
        files = [above for above in reversed((path, *path.parents)) if above.exists() and not above.is_dir()]
        return f"{files[0] if files else path} is not a directory"
    if error.filename:
        return f"{error.filename}: {error.strerror}{_ADVICE.get(error.errno or 0, '')}"
    return str(error)


_ADVICE = {
    errno.ENOENT: ": check the path",
    errno.EACCES: ": choose another path, or change its permissions",
    errno.EPERM: ": choose another path, or change its permissions",
    errno.EROFS: ": choose another path",
    errno.ENOSPC: ": free some space, then try again",
}


def start_error(error: Exception, address: str = "", port: int = 0) -> StartError:
    """Error for users of a server that did not start. `address` and `port` are those that it tried to bind."""
    if isinstance(error, StartError):
        return error
    if isinstance(error, ValueError):
        return InvalidSettings(str(error))
    if isinstance(error, OSError):
        return (_unbound(error, address, port) if address else None) or StartError(explain(error))
    return StartError(str(error))


def _unbound(error: OSError, address: str, port: int) -> StartError | None:
    """Error for an address that cannot be bound; None if the error has another cause."""
    if error.errno == errno.EADDRINUSE:
        return PortInUse(
            f"port {port} on {address} is taken: stop the process that uses it, or choose another with --secure-port"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return StartError(f"{address} is not an address of this machine: choose another with --bind-address")
    if error.errno == errno.EACCES and error.filename is None:
        return StartError(
            f"port {port} on {address} needs more permissions: choose another with --secure-port"
        )
    return None


def stop_signals() -> tuple[signal.Signals, ...]:
    """Signals that stop a server gracefully. SIGHUP arrives when the terminal is closed; `nohup` ignores it."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM) if ignored else (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's event loop if it is installed, else asyncio's."""
    try:
        # Saves start-up time: commands that run no server do without it.
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _settle() -> None:
    """Tunes the garbage collector: present objects are frozen, and collections are rarer, because requests
    rarely leave reference cycles. A collection before the freeze would take 20 ms and find little garbage."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


async def _serve(
    make: Callable[[], Server], announce: Callable[[int], None], sock: socket.socket | None
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in stop_signals():
        loop.add_signal_handler(number, stop.set)
    server = make()
    starting = asyncio.ensure_future(server.start(sock=sock))
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await server.stop(0.0)
        return
    try:
        await starting
    except OSError as error:
        raise start_error(error, server.config.bind_address, server.config.secure_port) from None
    _settle()
    try:
        announce(server.port)
        await stopping
        if server.config.shutdown_delay_duration:
            server.stopping = True  # /readyz fails from now on, so that load balancers choose other servers
            await asyncio.sleep(server.config.shutdown_delay_duration)
    finally:
        await server.stop(STOP_GRACE)
