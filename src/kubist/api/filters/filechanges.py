"""Detection of changes to a configuration file while the server runs."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

log = logging.getLogger("kubist.filters")

INTERVAL = 1.0
"""Seconds between two checks of the file."""


class FileChanges:
    """Follows one file. The file is read only when its inode, size or modification time differs."""

    def __init__(self, path: str, content: bytes) -> None:
        self.path = path
        self._content = content
        self._stamp: tuple[int, ...] = ()

    async def next(self) -> bytes:
        """Waits until the content of the file changes, and returns it."""
        while True:
            await asyncio.sleep(INTERVAL)
            try:
                status = os.stat(self.path)
                stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
                if stamp == self._stamp:
                    continue
                content = await asyncio.to_thread(Path(self.path).read_bytes)
            except OSError as error:
                if self._stamp != (0,):
                    log.error(
                        "%s cannot be read, its old content stays in force: %s", self.path, error.strerror
                    )
                self._stamp = (0,)
                continue
            self._stamp = stamp
            if content != self._content:
                self._content = content
                return content

    def forget(self) -> None:
        """Makes `next` return the present content once more."""
        self._content, self._stamp = b"", ()
