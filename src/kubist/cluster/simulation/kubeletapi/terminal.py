"""Terminal of a simulated process: echoes the keys, edits lines, and ends lines of output with CR LF."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from kubist.cluster.simulation.shell.container import Io

_INTERRUPT, _END, _BACKSPACES, _KILL = 0x03, 0x04, (0x08, 0x7F), 0x15
_LINE_LIMIT = 4096
_AT_ONCE = 1024
"""Keys that are handled before other tasks of the event loop get their turn."""


class Terminal:
    """Streams of a process behind a terminal in canonical mode."""

    def __init__(self, io: Io) -> None:
        self._io = io
        self._line = bytearray()
        self._typed: Iterator[int] = iter(b"")
        """Keys that were read but not handled yet."""
        self._escape = False

    async def write(self, data: bytes, *, error: bool = False) -> None:
        await self._io.write(data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))

    async def read(self) -> bytes:
        """Next line with its newline; empty at the end of input."""
        while True:
            for count, key in enumerate(self._typed, 1):
                line = await self._press(key)
                if line is not None:
                    return line
                if not count % _AT_ONCE:
                    await asyncio.sleep(0)
            typed = await self._io.read()
            self._typed = iter(typed)
            if not typed:
                rest = bytes(self._line)
                self._line.clear()
                return rest

    async def _press(self, key: int) -> bytes | None:
        """Handles a key. Returns a line when it is complete; empty for the end of input."""
        line = self._line
        if self._escape:
            # Cursor keys and other sequences end with a letter or a tilde.
            self._escape = not (chr(key).isalpha() or key == 0x7E)
        elif key in b"\r\n":
            await self.write(b"\n")
            text = bytes(line) + b"\n"
            line.clear()
            return text
        elif key == _INTERRUPT:
            line.clear()
            await self.write(b"^C\n")
            return b"\n"
        elif key == _END:
            if not line:
                return b""
        elif key == _KILL:
            await self._io.write(b"\b \b" * len(line))
            line.clear()
        elif key in _BACKSPACES:
            if line:
                del line[-1]
                await self._io.write(b"\b \b")
        elif key == 0x1B:
            self._escape = True
        elif key >= 0x20 and len(line) < _LINE_LIMIT:
            line.append(key)
            await self._io.write(bytes([key]))
        return None
