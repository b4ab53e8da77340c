"""Controller manager: selects the controllers and runs them on one server of a store."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable

from kubist.api.object_client import CONTROLLER_MANAGER, ObjectClient
from kubist.api.verbs.resource_request import Services
from kubist.cluster.control.certificatesigningrequest import CertificateCleaner, CertificateSigning
from kubist.cluster.control.clusterrole_aggregation import ClusterRoleAggregation
from kubist.cluster.control.disruption import Disruption
from kubist.cluster.control.garbage_collector import GarbageCollector
from kubist.cluster.control.guidance import Guidance
from kubist.cluster.control.leader import Leader
from kubist.cluster.control.loop import Loop
from kubist.cluster.control.namespace import Namespaces
from kubist.cluster.control.persistentvolume_protection import ClaimProtection, VolumeProtection
from kubist.cluster.control.pod_garbage_collector import PodGarbageCollector
from kubist.cluster.control.resourcequota import ResourceQuotas
from kubist.cluster.control.root_ca_certificate_publisher import RootCertificates
from kubist.cluster.control.serviceaccount import ServiceAccounts
from kubist.cluster.control.serviceaccount_token import LegacyTokenCleaner, ServiceAccountTokens
from kubist.cluster.control.ttl_after_finished import TTLAfterFinished

log = logging.getLogger("kubist.control")


class Manager:
    """Runs the controllers that the configuration names, as long as this server is the leader."""

    def __init__(self, api: Services, simulation: Iterable[type[Loop]] = ()) -> None:
        self.api = api
        self.client = ObjectClient(api, CONTROLLER_MANAGER)
        self.client.tokens = api.cluster.tokens
        self.loops: list[Loop] = []
        self._kinds = chosen(api.config.controllers)
        if api.config.workloads:
            # Saves start-up time: few servers simulate workloads.
            from kubist.cluster.control import workloads

            self._kinds = [kind for kind in self._kinds if kind.name not in ON_REQUEST] + workloads.loops()
        self._kinds += simulation
        self._task: asyncio.Task[None] | None = None
        self._leader: Leader | None = None

    async def start(self) -> None:
        if not self.api.registry.store.local:
            self._leader = Leader(self.client)
        self._task = asyncio.ensure_future(self._run_while_leader())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        leads = bool(self.loops)
        await self._stop_loops()
        if self._leader is not None and leads:
            await self._leader.release()

    async def _run_while_leader(self) -> None:
        """Runs the controllers: at once on a local store, else whenever this server is the leader."""
        if self._leader is None:
            await self._run_loops()
            return
        while True:
            await self._leader.acquire()
            await self._run_loops()
            await self._leader.hold()
            await self._stop_loops()

    async def _run_loops(self) -> None:
        registry = self.api.registry
        for collection in list(registry.cache.collections.values()):
            await collection.ready()
        for kind in self._kinds:
            # Each controller reads whole collections at its start. Requests and other servers of this event loop run in
            # between.
            await asyncio.sleep(0)
            try:
                loop = kind(self.client)
                self.loops.append(loop)
                loop.start()
            except Exception:
                log.exception("the controller %s cannot start", kind.name)

    async def _stop_loops(self) -> None:
        loops, self.loops = self.loops, []
        await asyncio.gather(*(loop.stop() for loop in loops))


def available() -> list[type[Loop]]:
    """All controllers except those of workloads, by their names in kube-controller-manager."""
    return [
        Namespaces,
        GarbageCollector,
        ServiceAccounts,
        RootCertificates,
        ServiceAccountTokens,
        LegacyTokenCleaner,
        ClusterRoleAggregation,
        ResourceQuotas,
        Disruption,
        ClaimProtection,
        VolumeProtection,
        PodGarbageCollector,
        CertificateSigning,
        CertificateCleaner,
        TTLAfterFinished,
        Guidance,
    ]


ON_REQUEST = (Guidance.name,)
"""Controllers that `*` does not contain. `kubist serve` names them."""


def chosen(names: Iterable[str]) -> list[type[Loop]]:
    """Controllers for a list of names: `*` for all but those on request, `name` for one, `-name` to exclude one.
    ValueError for unknown names."""
    selection = set(names)
    known = available()
    loops = {loop.name for loop in known}
    for name in sorted(selection - {"*"}):
        if name.removeprefix("-") not in loops:
            listed = ", ".join(sorted(loops))
            raise ValueError(f"{name.removeprefix('-')!r} is not a controller: choose from {listed}")
    if "*" in selection:
        selection |= loops.difference(ON_REQUEST)
    return [loop for loop in known if loop.name in selection and f"-{loop.name}" not in selection]
