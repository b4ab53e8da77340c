"""Store process: owns the store and serves it to the workers. With one writer, commits are still batched.

It ends after the workers: it ignores SIGINT, SIGTERM and SIGHUP, which reach the whole process group, and
stops only when the supervisor closes its pipe.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import socket

from kubist.api.config import Config
from kubist.api.discovery.counters import Counters
from kubist.errors import StartError
from kubist.server.runtime.run import STOP_GRACE, new_event_loop, start_error
from kubist.server.server import make_store
from kubist.server.workers.child import Peers, Pipes
from kubist.storage.remote.ipc import SharedRevision
from kubist.storage.remote.server import StoreServer
from kubist.storage.store import StoreError


def run_store(
    config: Config, listener: socket.socket, revision: SharedRevision, peers: Peers, pipes: Pipes
) -> StartError | None:
    """Main function of the store process. Returns the error if it failed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(_run_store(config, listener, revision, peers, pipes))
    except (StoreError, OSError) as error:
        return start_error(error)
    return None


async def _run_store(
    config: Config, listener: socket.socket, revision: SharedRevision, peers: Peers, pipes: Pipes
) -> None:
    store = make_store(config)
    await store.open()
    try:
        server = StoreServer(store, revision)
        await peers.start(_usage)
        await server.start(listener)
        gc.freeze()
        gc.enable()
        cut = asyncio.Event()
        asyncio.get_running_loop().add_reader(pipes.cut, cut.set)
        pipes.ready()
        await cut.wait()
        asyncio.get_running_loop().remove_reader(pipes.cut)
        await server.stop(STOP_GRACE)
        await peers.stop()
    finally:
        await store.close()


def _usage() -> Counters:
    counters = Counters()
    counters.measure()
    return counters
