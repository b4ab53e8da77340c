"""Scenes on the parts of a real server, without HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Unpack, cast

from kubist.api.config import Config
from kubist.api.object_client import ObjectClient
from kubist.api.settings import Settings
from kubist.server.server import Server

Scene = Callable[[ObjectClient], Awaitable[None]]


def play(directory: Path, scene: Scene, **settings: Unpack[Settings]) -> None:
    """Runs a scene on a new server with an in-memory store."""

    async def run() -> None:
        given: Settings = {"bind_address": "127.0.0.1", "secure_port": 0, "cert_dir": directory, **settings}
        server = Server(Config(**cast("dict[str, Any]", given)))
        await server.start()
        try:
            await scene(server.api.cluster)
        finally:
            await server.stop(0)

    asyncio.run(run())
