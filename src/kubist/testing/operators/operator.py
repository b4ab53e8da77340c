"""A running operator under test: as a process, or in a thread of the test process."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from kubist.testing.operators import run_kopf
from kubist.testing.operators.denials import Denials
from kubist.testing.operators.run_kopf import Watch

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

STOP_SECONDS = 20.0
"""Seconds after which an operator that does not stop is killed."""
LINES = 10_000
"""Maximum number of lines of output that are kept."""
SHOWN = 30
"""Number of lines of output in an error."""


class OperatorFailed(Exception):
    """An operator did not start, or ended before it was stopped."""


class Operator:
    """An operator under test. It stops at the end of a `with` block or of the test."""

    def __init__(self, title: str, denials: Denials) -> None:
        self.title = title
        self._denials = denials
        self._lines: deque[str] = deque(maxlen=LINES)
        self.is_stopped = False

    def __repr__(self) -> str:
        state = "running" if self.is_running else "stopped" if self.is_stopped else "ended"
        return f"<operator {self.title}: {state}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    @property
    def output(self) -> str:
        """Output of the operator until now; in a thread, the log of kopf. The last 10,000 lines."""
        return "".join(list(self._lines))

    def failure(self, what: str) -> OperatorFailed:
        output = "".join(list(self._lines)[-SHOWN:]).rstrip() or "(no output)"
        denials = self._denials.text()
        seen = f"\n{denials}\n" if denials else " "
        return OperatorFailed(f"operator {self.title} {what}.{seen}Its output:\n{output}")

    @property
    def is_running(self) -> bool:
        raise NotImplementedError

    @property
    def end(self) -> str:
        """Reason why the operator ended on its own; empty if it runs or was stopped."""
        raise NotImplementedError

    def watches(self, deadline: float) -> list[Watch]:
        """Watches of the operator, once it has started. Raises OperatorFailed."""
        raise NotImplementedError

    def stop(self) -> None:
        """Stops the operator and waits for its end."""
        raise NotImplementedError


class ProcessOperator(Operator):
    """An operator in a process of its own. Its output appears in that of the test."""

    def __init__(
        self,
        title: str,
        denials: Denials,
        settings: Mapping[str, Any],
        env: Mapping[str, str],
        directory: Path,
    ) -> None:
        super().__init__(title, denials)
        self._ready, channel = os.pipe()
        program = Path(run_kopf.__file__)
        try:
            # -P: the directory of the program is not a source of modules.
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(program), json.dumps(settings)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                text=True,
                errors="replace",
                cwd=directory,
                env={**env, run_kopf.READY_FD: str(channel), "PYTHONUNBUFFERED": "1"},
                pass_fds=[channel],
            )
        except BaseException:
            os.close(self._ready)
            raise
        finally:
            os.close(channel)
        self._reader = threading.Thread(target=self._read, name=f"output of {title}", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append(line)
            with contextlib.suppress(ValueError, OSError):  # pytest has closed its capture
                sys.stdout.write(line)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Exit code; None while it runs."""
        return self._process.poll()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def end(self) -> str:
        code = self._process.poll()
        return "" if code is None or self.is_stopped else f"ended with exit code {code}"

    def watches(self, deadline: float) -> list[Watch]:
        try:
            told = b""
            while not told.endswith(b"\n"):
                wait = max(deadline - time.perf_counter(), 0.0)
                if not select.select([self._ready], [], [], wait)[0]:
                    raise self.failure("did not start in time")
                part = os.read(self._ready, 65536)
                if not part:
                    code = self._finish()
                    self.is_stopped = True
                    raise self.failure(f"did not start; its exit code is {code}")
                told += part
            return [(group, resource, namespace) for group, resource, namespace in json.loads(told)]
        finally:
            os.close(self._ready)

    def stop(self) -> None:
        if self.is_running:
            self.is_stopped = True
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._finish()

    def _finish(self) -> int:
        """Waits for the end and for the rest of the output. Returns the exit code."""
        code = self._process.wait()
        self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()
        return code


class ThreadOperator(Operator):
    """An operator in a thread of the test process, so that tests can replace its functions and see its variables."""

    def __init__(
        self, title: str, denials: Denials, options: Mapping[str, Any], level: int, grace: float | None
    ) -> None:
        super().__init__(title, denials)
        self._options = dict(options)
        self._grace = grace
        self._ready, self._started = threading.Event(), threading.Event()
        self._end_operator: Callable[[], None] = lambda: None
        self._watches: list[Watch] = []
        self._error: BaseException | None = None
        self._log = _Log(self._lines.append)
        self._log.start(level)
        self._thread = threading.Thread(target=self._run, name=f"operator {title}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            run_kopf.run(self._options, self._tell, self._start, grace=self._grace)
        except BaseException as error:
            self._error = error
            self._lines.extend(traceback.format_exception(error))
        finally:
            self._started.set()
            self._ready.set()

    def _start(self, end: Callable[[], None]) -> None:
        self._end_operator = end
        self._started.set()

    def _tell(self, watches: list[Watch]) -> None:
        self._watches = watches
        self._ready.set()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    @property
    def end(self) -> str:
        if self.is_running or (self.is_stopped and self._error is None):
            return ""
        return f"ended with {self._error!r}" if self._error is not None else "ended"

    def watches(self, deadline: float) -> list[Watch]:
        if not self._ready.wait(max(deadline - time.perf_counter(), 0.0)):
            raise self.failure("did not start in time")
        if self._error is not None or not self._thread.is_alive():
            self._thread.join()
            raise self.failure("did not start")
        return self._watches

    def stop(self) -> None:
        self.is_stopped = True
        self._started.wait(STOP_SECONDS)
        self._end_operator()
        self._thread.join(STOP_SECONDS)
        self._log.stop()
        if self._thread.is_alive():
            raise self.failure(f"did not stop within {STOP_SECONDS:g} seconds")


class _Log(logging.Handler):
    """Passes the log lines of kopf on."""

    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__()
        self._write = write
        self._logger = logging.getLogger("kopf")
        self._level = self._logger.level
        self.setFormatter(logging.Formatter("[%(asctime)s] %(name)-20s [%(levelname)-8s] %(message)s\n"))

    def emit(self, record: logging.LogRecord) -> None:
        self._write(self.format(record))

    def start(self, level: int) -> None:
        self._level = self._logger.level
        self._logger.setLevel(level)
        self._logger.addHandler(self)

    def stop(self) -> None:
        self._logger.removeHandler(self)
        self._logger.setLevel(self._level)


def missing_watches(expected: Iterable[Watch], open_: Iterable[Watch]) -> list[str]:
    """Resources whose watch is not open yet, such as `widgets.example.com in default`."""
    left = sorted(set(expected) - set(open_))
    return [
        f"{resource}.{group}".rstrip(".") + (f" in {namespace}" if namespace else "")
        for group, resource, namespace in left
    ]
