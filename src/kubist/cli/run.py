"""Runs a server until it is told to stop. Whatever keeps it from starting is one line and exit code 1."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from kubist.storage.store import StoreError

if TYPE_CHECKING:
    from kubist.server import Server

STOP_GRACE = 10.0


def logging_at(verbosity: int) -> None:
    """Log to standard error, one line a record."""
    level = logging.DEBUG if verbosity >= 4 else logging.INFO if verbosity >= 1 else logging.WARNING
    logging.basicConfig(
        level=level, format="%(asctime)s %(levelname).1s %(name)s: %(message)s", stream=sys.stderr
    )


def run(make: Callable[[], Server], announce: Callable[[Server], None]) -> int:
    """Start what `make` makes, call `announce` when it serves, stop on SIGINT or SIGTERM."""
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(_serve(make, announce))
    except (StoreError, ValueError) as error:
        return fail(str(error))
    except OSError as error:
        return fail(explain(error))
    except KeyboardInterrupt:
        pass
    return 0


def fail(message: str) -> int:
    print(f"kubist: {' '.join(message.split())}", file=sys.stderr)
    return 1


def explain(error: OSError) -> str:
    """What the operating system objects to, in words."""
    if error.errno == errno.EADDRINUSE:
        return f"the port is taken: {error.strerror or error}"
    if error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """The fastest there is."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _serve(make: Callable[[], Server], announce: Callable[[Server], None]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)
    server = make()
    await server.start()
    announce(server)
    await stop.wait()
    await server.stop(STOP_GRACE)
