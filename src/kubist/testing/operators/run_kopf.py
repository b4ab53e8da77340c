"""Runs a kopf operator. The test runs this file as a program, or calls `run` in a thread.

The program does not import Kubist, because the operator under test should load quickly and see only its own modules.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import importlib.util
import itertools
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

PAUSE = 0.01
"""Seconds between two checks of the state of kopf."""
CLOSE_TRIES = 100
CANCEL_SECONDS = 1.0
"""Seconds in which cancelled functions end. Synchronous ones cannot be cancelled."""
READY_FD = "KUBIST_OPERATOR_READY_FD"
Watch = tuple[str, str, str]
"""Group, resource and namespace (empty: all) of a watch."""


def load(files: Iterable[str], modules: Iterable[str]) -> None:
    """Loads the sources of an operator, which registers its handlers."""
    for file in files:
        path = Path(file).resolve()
        if str(path.parent) not in sys.path:
            sys.path.insert(0, str(path.parent))
        name = f"kubist_operator_{path.stem}"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} is not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    for name in modules:
        importlib.import_module(name)


def run(
    options: dict[str, Any],
    on_ready: Callable[[list[Watch]], None],
    on_start: Callable[[Callable[[], None]], None] | None = None,
    *,
    grace: float | None = None,
    on_hang: Callable[[], None] = lambda: None,
) -> None:
    """Runs the operator whose handlers are registered, until it is stopped. `options` are those of `kopf.operator`.

    `on_ready` gets the watches that the operator opens after its start. `on_start` gets a function that stops the
    operator from another thread. Functions that still run `grace` seconds after the stop are cancelled. `on_hang` is
    called if some run on.
    """
    # Saves start-up time, and kopf is not a dependency of Kubist.
    import kopf

    insights = _new_insights()
    ready, ended = threading.Event(), threading.Event()

    def report() -> None:
        while not ended.is_set():
            if ready.wait(PAUSE) and _is_informed(insights):
                on_ready(_watches(insights))
                return
            ended.wait(PAUSE)

    async def operate() -> None:
        loop = asyncio.get_running_loop()
        stop = None  # with an unused flag, kopf takes 5 seconds to end after a signal
        if on_start is not None:
            # An event of asyncio: for those of threads kopf starts a thread that outlives an operator which fails.
            stop = asyncio.Event()
            on_start(functools.partial(_call, loop, stop.set))
        try:
            flags = {"insights": insights, "ready_flag": ready, "stop_flag": stop}
            if grace is None:
                await kopf.operator(**flags, **options)
            else:
                await _operate(grace, on_hang, **flags, **options)
        finally:
            await _close_connections(loop)

    reporter = threading.Thread(target=report, name="kopf-ready", daemon=True)
    reporter.start()
    try:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(operate())
    finally:
        ended.set()
        reporter.join()


async def _operate(grace: float, on_hang: Callable[[], None], **options: Any) -> None:
    """`kopf.operator` with a grace period. kopf waits 2 seconds for handlers, and 5 for all other functions."""
    # Saves start-up time, and kopf is not a dependency of Kubist.
    import kopf

    if options.get("settings") is None:
        settings = options["settings"] = kopf.OperatorSettings()
        # Old versions of kopf say batching.
        queueing = settings.queueing if hasattr(settings, "queueing") else settings.batching
        queueing.exit_timeout = min(queueing.exit_timeout, grace)
    others = asyncio.all_tasks()
    tasks = await kopf.spawn_tasks(**options)
    operator = asyncio.create_task(kopf.run_tasks(tasks, ignored=others))
    try:
        await asyncio.wait(tasks)  # they end when the operator stops; the last one runs the clean-up handlers
        await asyncio.wait([operator], timeout=grace)
    finally:
        operator.cancel()
        if not (await asyncio.wait([operator], timeout=CANCEL_SECONDS))[0]:
            on_hang()
        with contextlib.suppress(asyncio.CancelledError):
            await operator
    for task in tasks:
        if not task.cancelled():
            task.result()  # raises the error that ended the operator, if kopf was cancelled before it did so


async def _close_connections(loop: asyncio.AbstractEventLoop) -> None:
    """Waits until connections of the operator are closed, because Python warns about connections of an ended loop."""
    for _ in range(CLOSE_TRIES):
        transports = list(getattr(loop, "_transports", {}).values())
        if all(getattr(transport, "_sock", None) is None for transport in transports):
            return
        await asyncio.sleep(PAUSE)
    for transport in transports:
        transport.abort()
    await asyncio.sleep(PAUSE)


def _call(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: the operator has ended
        loop.call_soon_threadsafe(function)


def _new_insights() -> Any:
    """kopf's record of the resources that it watches. None if this version of kopf has no such record."""
    try:
        # Saves start-up time, and kopf is not a dependency of Kubist.
        from kopf._cogs.structs.references import Insights
    except ImportError:
        return None
    return Insights()


def _is_informed(insights: Any) -> bool:
    """Whether kopf knows all resources and namespaces that it watches."""
    if insights is None:
        return True
    return bool(insights.ready_resources.is_set() and insights.ready_namespaces.is_set())


def _watches(insights: Any) -> list[Watch]:
    if insights is None:
        return []
    pairs = itertools.product(set(insights.watched_resources), set(insights.namespaces))
    return sorted((resource.group, resource.plural, namespace or "") for resource, namespace in pairs)


def main() -> None:
    """Program: the only argument is a JSON object with the sources and options."""
    # Saves start-up time, and kopf is not a dependency of Kubist.
    import kopf

    config = json.loads(sys.argv[1])
    channel = int(os.environ.pop(READY_FD))

    def tell(watches: list[Watch]) -> None:
        os.write(channel, json.dumps(watches).encode() + b"\n")
        os.close(channel)

    sys.path.insert(0, os.getcwd())
    kopf.configure(**config["logging"])
    load(config["files"], config["modules"])
    # Python waits for threads before it exits.
    run(config["options"], tell, grace=config["grace"], on_hang=lambda: os.kill(os.getpid(), signal.SIGKILL))


if __name__ == "__main__":
    main()
