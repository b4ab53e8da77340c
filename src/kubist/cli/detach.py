"""`kubist serve --detach`: runs the server in a process of its own, and returns when it is ready."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

from kubist.base import files
from kubist.cli.banner import Served, banner
from kubist.cli.exits import FAILED, INTERRUPTED, fail, name_flag
from kubist.cli.instance import LOG, holder
from kubist.cli.progress import sampled
from kubist.cli.serve import Service

_LARGEST_LOG = 16 << 20
"""Maximum size in bytes of a log to which a new server appends. A larger one becomes `server.log.1`."""
_LAST_LINES = 5


def detach(service: Service) -> int:
    """Starts the server. Returns the exit code: that of the server if it does not become ready."""
    if holder(service.directory) is not None:
        return service.fail_in_use()
    path = service.directory / LOG
    log = _open_log(path)
    start = os.fstat(log).st_size
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    # Ctrl-C waits until the parent can stop its child.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    child = os.fork()  # There are no threads and no event loop yet.
    if child == 0:
        _become_server(service, log, reading, writing, mask)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(writing)
        with open(reading) as pipe, sampled("Waiting for the server", lambda: (0, 0, "")):
            text = pipe.readline()
    except KeyboardInterrupt:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
        fail("interrupted: the server was stopped")
        return INTERRUPTED
    if text:
        print(banner(Served.from_json(text)))
        return 0
    _, status = os.waitpid(child, 0)
    with open(log, "rb") as written:  # by its descriptor, because a server in memory removes its directory
        written.seek(start)
        lines = written.read().decode(errors="replace").splitlines()
    return _explain(lines, path, os.waitstatus_to_exitcode(status))


def _open_log(path: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size > _LARGEST_LOG:
            path.replace(path.with_name(f"{LOG}.1"))
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, files.FILE_MODE)
    files.tighten(descriptor)
    return descriptor


def _become_server(
    service: Service, log: int, reading: int, writing: int, mask: set[signal.Signals | int]
) -> NoReturn:
    """Runs the server in this new process, without the terminal."""
    code = FAILED
    try:
        os.setsid()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(reading)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)

        def tell(served: Served) -> None:
            os.write(writing, served.to_json().encode() + b"\n")
            os.close(writing)

        code = service.run(tell)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except OSError as error:
        # Saves start-up time: only errors need it.
        from kubist.server.runtime.run import explain

        code = fail(name_flag(explain(error), service.arguments))
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        gc.disable()
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _explain(lines: list[str], path: Path, code: int) -> int:
    """Prints the error message of a server that did not start. Returns its exit code."""
    messages = [line for line in lines if line.startswith("kubist: ")]
    if messages:
        fail(messages[-1].removeprefix("kubist: "))
        return code
    cause = f"signal {-code} ended it" if code < 0 else f"exit code {code}"
    fail(f"the server did not become ready: {cause}. Its log is {path}")
    for line in lines[-_LAST_LINES:]:
        print(f"  {line}", file=sys.stderr)
    return code if code > 0 else FAILED
