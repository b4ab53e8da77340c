"""Keeps the ConfigMap `extension-apiserver-authentication` up to date. Part of the API server itself."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from kubist.api.bootstrap.trust import TRUST, Trust
from kubist.base import clock
from kubist.base.http.tls.contexts import CHECK_INTERVAL, stamp
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.storage.cache.cache import Change

if TYPE_CHECKING:
    from kubist.api.config import Config
    from kubist.api.object_client import ObjectClient

log = logging.getLogger("kubist.control")

RESYNC = 60.0
"""Seconds after which changes by users are undone."""
NAMESPACE = "kube-system"


async def keep_trust(client: ObjectClient) -> None:
    """Writes the ConfigMap when a CA file changes or the ConfigMap is created or deleted, and every minute, as long as
    the server runs."""
    config = client.config
    files = [file for file in (config.client_ca_file, config.requestheader_client_ca_file) if file]
    if not files:
        return
    own = _read(config)
    read = stamp(files)
    changed = asyncio.Event()

    def wake(changes: list[Change]) -> None:
        for change in changes:
            if change.new is None or change.old is None:
                entry = change.new or change.old
                if entry is not None and (entry.name, entry.namespace) == (TRUST, NAMESPACE):
                    changed.set()

    client.collection("configmaps").subscribe(wake, wake)
    # A cluster below /clusters has a CA that never changes, and a host may have thousands of them.
    interval = RESYNC if config.url_prefix else CHECK_INTERVAL
    due = 0.0
    while True:
        new_stamp = stamp(files)
        if new_stamp != read:
            own, read, due = await asyncio.to_thread(_read, config) or own, new_stamp, 0.0
        if own is not None and (changed.is_set() or clock.monotonic() >= due):
            changed.clear()
            due = clock.monotonic() + RESYNC
            await _publish(client, own)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(changed.wait(), interval)


def _read(config: Config) -> Trust | None:
    try:
        return Trust.of_config(config)
    except (OSError, ValueError) as error:
        log.warning("keeping the published client authorities: %s", error)
        return None


async def _publish(client: ObjectClient, own: Trust) -> None:
    def edit(current: Object) -> Object:
        data = Trust.of_data(current.get("data") or {}).combined(own).data()
        rest = {name: value for name, value in current.items() if name != "data"}
        return {**rest, "data": data} if data else rest

    try:
        current = client.get("configmaps", TRUST, NAMESPACE)
        if current is not None and edit(current) != current:
            await client.update("configmaps", TRUST, NAMESPACE, edit)
        elif current is None and (data := own.data()):
            await client.create("configmaps", {"metadata": {"name": TRUST}, "data": data}, NAMESPACE)
    except ValueError as error:
        log.warning("the ConfigMap %s/%s cannot be read: %s", NAMESPACE, TRUST, error)
    except APIError as error:
        log.warning("cannot write the ConfigMap %s/%s: %s", NAMESPACE, TRUST, error.message)
        if error.code == 413 or (error.code == 422 and "Too long" in error.message):
            # It is created again with the values of the running servers.
            await client.delete("configmaps", TRUST, NAMESPACE)
