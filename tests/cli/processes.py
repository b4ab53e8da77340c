"""Runs the command as a separate process, which is ended by its ID."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import yaml

from kubist.cli import main

ROOT = Path(__file__).parents[2]
"""The repository, from which a process imports the helpers of the tests."""


def environment(home: Path) -> dict[str, str]:
    """Environment that touches nothing outside `home`. Bytecode caches are kept, as for any user."""
    dropped = ("KUBECONFIG", "XDG_DATA_HOME", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    paths = [str(ROOT), *filter(None, [kept.get("PYTHONPATH")])]
    return {**kept, "HOME": str(home), "PYTHONUNBUFFERED": "1", "PYTHONPATH": os.pathsep.join(paths)}


@contextlib.contextmanager
def _kept_signal_handlers() -> Iterator[None]:
    """Restores the signal handlers of this process, which servers replace."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def kubist(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command that ends by itself, within this process."""
    output, errors = io.StringIO(), io.StringIO()
    with (
        _kept_signal_handlers(),
        mock.patch.dict(os.environ, environment(home), clear=True),
        contextlib.chdir(home),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
    ):
        code = main(list(arguments))
    return subprocess.CompletedProcess(arguments, code, output.getvalue(), errors.getvalue())


def check_one_line_error(home: Path, arguments: list[str], words: str) -> None:
    """Starts an apiserver with these arguments, which must fail with one line of output that has the words. The exit
    code is 2 for wrong flags, and 1 if the server finds the mistake."""
    common = ("--cert-dir=certs", "--secure-port=0", "--bind-address=127.0.0.1")
    result = kubist("apiserver", *common, *arguments, home=home)
    assert result.returncode in (1, 2)
    lines = [line for line in result.stderr.splitlines() if line.startswith("kubist: ")]
    assert len(lines) == 1 and words in lines[0]
    assert "Traceback" not in result.stderr


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process, which removes its temporary files. One that does not end is killed."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Running:
    """A running server command."""

    def __init__(
        self,
        home: Path,
        *arguments: str,
        program: tuple[str, ...] = ("-m", "kubist"),
        python: str = sys.executable,
    ) -> None:
        self.log = home / f"log-{time.monotonic_ns()}"
        self._output = self.log.open("wb")
        self.process = subprocess.Popen(
            [python, *program, *arguments],
            env=environment(home),
            stdout=self._output,
            stderr=subprocess.STDOUT,
            cwd=home,
        )

    def wait_for(self, pattern: str, seconds: float = 60) -> str:
        """Waits until its output matches, and returns the first group of the match."""
        deadline = time.monotonic() + seconds
        while (match := re.search(pattern, self.output)) is None:
            assert self.process.poll() is None and time.monotonic() < deadline, self.output
            time.sleep(0.01)
        return match[1]

    @property
    def output(self) -> str:
        return self.log.read_text()

    def stop(self, number: int = signal.SIGINT, seconds: float = 60) -> int:
        self.process.send_signal(number)
        return self.process.wait(seconds)

    def close(self) -> None:
        end(self.process)
        self._output.close()


@contextlib.contextmanager
def running(
    home: Path, *arguments: str, program: tuple[str, ...] = ("-m", "kubist"), python: str = sys.executable
) -> Iterator[Running]:
    process = Running(home, *arguments, program=program, python=python)
    try:
        yield process
    finally:
        process.close()


def port_of(kubeconfig: Path) -> int:
    server = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    return int(server.rpartition(":")[2])
