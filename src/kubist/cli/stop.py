"""`kubist stop`: stops the server of a data directory and waits for its end."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from pathlib import Path

from kubist.cli import flags, help
from kubist.cli.data_dir import DATA_DIR, data_dir
from kubist.cli.exits import fail
from kubist.cli.instance import holder
from kubist.cli.progress import step
from kubist.cli.status import not_running
from kubist.model.meta import durations

TIMEOUT = flags.Flag("timeout", "duration", "30s", "Time to wait for the end of the server.")
FLAGS = (DATA_DIR, TIMEOUT)
TITLE = """\
Stops the server of a data directory: it finishes accepted requests and closes its store. Does nothing if none runs.

Usage:
  kubist stop [flags]"""
_PAUSE = 0.1


def main(arguments: list[str]) -> int:
    values = flags.parse(arguments, {flag.name: flag for flag in FLAGS})
    if "help" in values:
        return help.show(TITLE, FLAGS)
    timeout = values.get("timeout", [TIMEOUT.default])[-1]
    try:
        seconds = durations.seconds(timeout)
    except ValueError as error:
        raise flags.FlagError(f'invalid argument "{timeout}" for "--timeout" flag: {error}') from None
    directory = data_dir(values)
    pid = holder(directory)
    if pid is None:
        print("\n".join(not_running(directory)))
        return 0
    if not pid:
        return fail(f"the server of {directory} runs in another container: stop it there")
    try:
        stopped = _stop(directory, pid, seconds)
    except PermissionError:
        return fail(f"process {pid} belongs to another user: run `kubist stop` as that user")
    if not stopped:
        return fail(
            f"process {pid} still runs after {durations.written(seconds)}: wait with `kubist stop --timeout 5m`, "
            f"or end it with `kill -9 {pid}`"
        )
    print(f"Stopped the server of {directory.absolute()} (process {pid}).")
    return 0


def _stop(directory: Path, pid: int, seconds: float) -> bool:
    """Sends SIGTERM and waits. Returns whether the process has ended."""
    with contextlib.ExitStack() as stack:
        handle = -1
        if sys.platform == "linux":
            try:
                handle = os.pidfd_open(pid)
            except ProcessLookupError:
                return True
            stack.callback(os.close, handle)
        if holder(directory) != pid:  # it ended, and another process may have its ID
            return True
        if sys.platform == "linux":
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGTERM)
        else:
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + seconds
        progress = stack.enter_context(step(f"Stopping process {pid}"))
        while not _has_ended(handle, directory, pid, _PAUSE):
            progress.update()
            if time.monotonic() > deadline:
                return False
    return True


def _has_ended(handle: int, directory: Path, pid: int, seconds: float) -> bool:
    """Waits for the end of a process, with its handle or by its lock."""
    if handle >= 0:
        return bool(select.select([handle], [], [], seconds)[0])
    time.sleep(seconds)
    return holder(directory) != pid
