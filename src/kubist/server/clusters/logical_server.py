"""Server of one cluster: a complete API server without a socket, which the host passes requests to."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from typing import Any

from kubist.api.bootstrap.objects import NAMESPACES
from kubist.api.bootstrap.trust import TRUST, Trust
from kubist.api.config import SERVE_DEFAULTS, Config
from kubist.model.meta import times
from kubist.model.meta.object import Object
from kubist.server.clusters.limits import LimitedStore
from kubist.server.clusters.spec import Record, Source
from kubist.server.server import Server
from kubist.storage.cache.cache import Change, Collection
from kubist.storage.store import Store

INHERITED = (
    "bind_address",
    "advertise_address",
    "external_hostname",
    "reported_version",
    "cors_allowed_origins",
    "strict_transport_security_directives",
    "service_cluster_ip_range",
    "service_node_port_range",
    "allow_privileged",
    "enable_admission_plugins",
    "disable_admission_plugins",
    "runtime_config",
    "feature_gates",
    "event_ttl",
    "encryption_provider_config",
    "encryption_provider_config_automatic_reload",
    "max_requests_inflight",
    "max_mutating_requests_inflight",
    "request_timeout",
    "min_request_timeout",
    "root_ca_file",
    "stages",
    "workload_delay",
    "workload_nodes",
    "workload_node_capacity",
    "workload_node_labels",
)
"""Settings of the host that apply to its clusters. Each cluster has its own credentials, authenticators and
authorizers."""


def configuration(host: Config, port: int, record: Record, credentials: dict[str, Any]) -> Config:
    """Configuration of the server of a cluster."""
    issuer = record.issuers[:1]
    settings: dict[str, Any] = {name: getattr(host, name) for name in INHERITED}
    return replace(
        SERVE_DEFAULTS,
        **(settings | credentials),
        secure_port=port,
        url_prefix=prefix(record.name),
        controllers=record.controllers,
        workloads=record.workloads,
        service_account_issuer=record.issuers,
        api_audiences=record.issuers,
        service_account_jwks_uri=f"{issuer[0]}/openid/v1/jwks" if issuer else "",
        profiling=False,  # profiles and log levels are the whole process's
    )


def prefix(name: str) -> str:
    return f"/clusters/{name}"


class LogicalServer(Server):
    """Server without a socket. `source`: the state that the store of a new cluster has already."""

    def __init__(self, config: Config, store: Store, source: Source | None = None) -> None:
        super().__init__(config, store=store)
        self._is_copy = source is not None and source.cache is not None
        self._is_new = source is not None and source.is_template
        if source is not None:
            self.registry.cache.starts_from = source.cache
            if source.clock is not None and self.bench is not None:
                self.bench.start_clock(*source.clock)
        if isinstance(store, LimitedStore):
            self.registry.cache.followers.add(store)

    async def _control(self) -> None:
        """Starts the control loops. If there is nothing to do for them yet, they start with the first write."""
        if self._is_new and not self.config.workloads:
            self.registry.cache.followers.add(self)
        else:
            await super()._control()

    def filled(self, collection: Collection) -> None:
        """Part of `Follower`: the content of a new collection is not a write."""

    def changed(self, collection: Collection, changes: list[Change]) -> None:
        """Part of `Follower`: the first write."""
        self.registry.cache.followers.discard(self)
        self._chores.append(asyncio.create_task(super()._control()))

    async def _bootstrap(self, port: int) -> None:
        if not self._is_copy:
            await super()._bootstrap(port)
        writes = [self._publish_authority()]
        if self._is_new:
            # Objects of the template are older than the cluster, and other clusters have the same ones.
            writes += map(self._renew, NAMESPACES)
        await asyncio.gather(*writes)

    async def _renew(self, name: str) -> None:
        """Gives a namespace a new UID, because tools identify a cluster by the UID of kube-system."""

        def change(obj: Object) -> Object:
            metadata = obj["metadata"]
            metadata["uid"] = str(uuid.uuid4())
            metadata["creationTimestamp"] = times.now()
            return obj

        await self.registry.mutate("namespaces", name, "", change)

    async def _publish_authority(self) -> None:
        """Publishes the CAs of this cluster and no others, even in a copy of another cluster."""
        data = Trust.of_config(self.config).data()

        def change(obj: Object) -> Object | None:
            return None if obj.get("data") == data else {**obj, "data": data}

        await self.registry.mutate("configmaps", TRUST, "kube-system", change)
