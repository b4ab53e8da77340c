"""Strict decoder for configuration files of the group apiserver.config.k8s.io.

Shapes are plain data: `str`, `bool` and `DURATION` (seconds), `[shape]` for a list, `{field: shape}` for an
object. A field that is absent or null is left out of the result.
"""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from typing import Any

from kubist.base.jsontext.errors import DecodeError
from kubist.model.codec import yaml
from kubist.model.meta import durations
from kubist.model.meta.object import Object

log = logging.getLogger("kubist.filters")


GROUP = "apiserver.config.k8s.io"
VERSIONS = ("v1", "v1beta1", "v1alpha1")
DURATION = float

Shape = Any


def read(path: str) -> bytes:
    """Content of a file. Raises ValueError if it is empty."""
    content = Path(path).read_bytes()
    if not content.strip():
        raise ValueError("empty config data")
    return content


def decode(content: bytes, kind: str, shape: Shape) -> Object:
    """Decoded object without kind and apiVersion. Raises ValueError for unknown fields and wrong types."""
    try:
        document = yaml.parse(content)
    except DecodeError as error:
        raise ValueError(str(error)) from None
    value = document.value
    if not isinstance(value, dict):
        raise ValueError(f"the file does not contain a {kind} object")
    version = value.get("apiVersion")
    if value.get("kind") != kind or version not in [f"{GROUP}/{known}" for known in VERSIONS]:
        raise ValueError(
            f'no kind "{value.get("kind")}" is registered for version "{version}": '
            f"the file must be a {kind} of {GROUP}/{VERSIONS[0]}"
        )
    problems = list(document.complaints)
    obj = _decode({k: v for k, v in value.items() if k not in ("kind", "apiVersion")}, shape, "", problems)
    if problems:
        raise ValueError(f"strict decoding error: {', '.join(problems)}")
    assert isinstance(obj, dict)
    return obj


def _decode(value: Any, shape: Shape, path: str, problems: list[str]) -> Any:
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            problems.append(f"{path} must be an object")
            return {}
        fields = {}
        for name, item in value.items():
            where = f"{path}.{name}" if path else name
            if name not in shape:
                problems.append(f'unknown field "{where}"')
            elif item is not None:
                fields[name] = _decode(item, shape[name], where, problems)
        return fields
    if isinstance(shape, list):
        if not isinstance(value, list):
            problems.append(f"{path} must be a list")
            return []
        return [_decode(item, shape[0], f"{path}[{index}]", problems) for index, item in enumerate(value)]
    if shape is DURATION:
        return _duration(value, path, problems)
    if not isinstance(value, shape):
        problems.append(f"{path} must be {'true or false' if shape is bool else 'a string'}")
        return shape()
    return value


def _duration(value: Any, path: str, problems: list[str]) -> float:
    if isinstance(value, str):
        try:
            return durations.parse(value) / durations.SECOND
        except ValueError as error:
            problems.append(f"{path}: {error}")
    else:
        problems.append(f"{path} must be a duration such as 30s")
    return 0.0


INTERVAL = 1.0
"""Seconds between two checks of the file."""


class FileChanges:
    """Watches one file. The file is read only when its inode, size or modification time differs."""

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
                        "%s cannot be read, its old content stays in effect: %s", self.path, error.strerror
                    )
                self._stamp = (0,)
                continue
            self._stamp = stamp
            if content != self._content:
                self._content = content
                return content

    def forget(self) -> None:
        """Makes `next` return the current content once more."""
        self._content, self._stamp = b"", ()
