"""Runs a program on a pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path
from types import TracebackType

from tests.cli.processes import end

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()=>][0-9A-B]?")


def plain(text: str) -> str:
    """Text without colours and cursor movements."""
    return ESCAPE.sub("", text)


class Terminal:
    """A program with a terminal of 24 lines, and 100 columns unless told otherwise."""

    def __init__(self, command: list[str], env: dict[str, str], cwd: Path, columns: int = 100) -> None:
        self._main, end = pty.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        without = ("NO_COLOR", "FORCE_COLOR")
        variables = {name: value for name, value in env.items() if name not in without}
        variables = {"TERM": "xterm-256color", **variables}
        self.process = subprocess.Popen(
            command, stdin=end, stdout=end, stderr=end, env=variables, cwd=cwd, start_new_session=True
        )
        os.close(end)
        self.text = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end(self.process)
        os.close(self._main)

    def write(self, text: str) -> None:
        os.write(self._main, text.encode())

    def wait_for(self, pattern: str, seconds: float = 60) -> re.Match[str]:
        """Waits until the text without colours matches."""
        deadline = time.monotonic() + seconds
        while (found := re.search(pattern, plain(self.text))) is None:
            assert time.monotonic() < deadline, self.text
            assert self._read(), f"the program has ended: {self.text}"
        return found

    def finish(self, seconds: float = 60) -> int:
        """Reads until the program ends. Returns its exit code."""
        deadline = time.monotonic() + seconds
        while self._read():
            assert time.monotonic() < deadline, self.text
        return self.process.wait(seconds)

    def interrupt(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def _read(self) -> bool:
        """Reads more text. False at the end."""
        ready, _, _ = select.select([self._main], [], [], 0.1)
        if not ready:
            return True
        try:
            block = os.read(self._main, 65536)
        except OSError:  # EIO: the last process has closed the terminal
            return False
        self.text += block.decode(errors="replace")
        return bool(block)
