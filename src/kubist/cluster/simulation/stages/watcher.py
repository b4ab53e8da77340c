"""Waits for the first Stage, and starts the player then. A server without Stages does not load the interpreters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.api.object_client import ObjectClient
from kubist.cluster.control.loop import Loop
from kubist.storage.cache.cache import Change, Collection

if TYPE_CHECKING:
    # Saves start-up time: few servers have Stages.
    from kubist.cluster.simulation.stages.player import Stages

API_VERSION = "kwok.x-k8s.io/v1alpha1"


class StageWatcher(Loop):
    """Control loop that the manager runs. The player is a part of it."""

    name = "kwok-stages"

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        self._own_client = client
        self._player: Stages | None = None

    def follow(self) -> None:
        cache = self.client.registry.cache
        if self.config.stages or any(map(has_stages, cache.collections.values())):
            self._play()
        else:
            cache.followers.add(self)

    async def stop(self) -> None:
        self.client.registry.cache.followers.discard(self)
        if self._player is not None:
            await self._player.stop()
        await super().stop()

    def filled(self, collection: Collection) -> None:
        if has_stages(collection):
            self._play()

    def changed(self, collection: Collection, _changes: list[Change]) -> None:
        if has_stages(collection):
            self._play()

    def _play(self) -> None:
        # Saves start-up time: few servers have Stages.
        from kubist.cluster.simulation.stages.player import Stages

        self.client.registry.cache.followers.discard(self)
        if self._player is None:
            self._player = Stages(self._own_client)
            self._player.start()


def is_of_stages(collection: Collection) -> bool:
    kind = collection.kind
    return kind.api_version == API_VERSION and kind.prefix.endswith("/stages/")


def has_stages(collection: Collection) -> bool:
    return is_of_stages(collection) and bool(collection.entries)
