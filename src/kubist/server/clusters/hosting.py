"""Host: a server whose socket also serves the clusters below /clusters/NAME."""

from __future__ import annotations

import socket
from pathlib import Path

from kubist.api.config import Config
from kubist.base.http.messages import Application
from kubist.base.listening import reachable
from kubist.errors import InvalidSettings
from kubist.server.clusters.api import ClustersAPI
from kubist.server.clusters.cluster import Host
from kubist.server.clusters.clusters import Clusters
from kubist.server.clusters.router import Router
from kubist.server.server import Server

DIRECTORY = "clusters"
"""Directory of the clusters on disk, in the data directory of the host."""


def check(config: Config) -> None:
    """Raises InvalidSettings for settings that exclude clusters."""
    if config.etcd_servers:
        raise InvalidSettings("--clusters cannot be used with --etcd-servers: clusters are stored in SQLite")
    if config.workers > 1:
        raise InvalidSettings("--clusters cannot be used with --workers: all clusters run in one process")
    if not config.test_bench:
        raise InvalidSettings("clusters need test_bench=True: /kubist/v1/clusters creates them")


class Hosting(Server):
    """Mixin: a server that has clusters. It comes before the class of the server."""

    clusters: Clusters | None = None
    """The clusters of this host. None before it has started, and after it has stopped."""
    _router: Router | None = None

    async def start(self, *, sock: socket.socket | None = None) -> None:
        check(self.config)
        await super().start(sock=sock)
        try:
            await self._start_clusters()
        except BaseException:
            await self.stop(0.0)
            raise

    async def _start_clusters(self) -> None:
        config = self.config
        assert self.bench is not None
        url = f"https://{config.external_hostname or reachable(config.bind_address)}:{self.port}"
        host = Host(config, self.port, self.api.clock, self.bench, url)
        directory = Path(config.data_dir) / DIRECTORY if config.data_dir else None
        clusters = Clusters(host, directory)
        await clusters.start()
        ClustersAPI(clusters, config.root_ca_file).register(self.bench.control)
        self.clusters = clusters
        self._router = Router(self, clusters.found)
        self._switch_outermost()

    def _outermost(self) -> Application:
        return self._router or self.application

    async def stop(self, grace: float = 10.0) -> None:
        clusters, self.clusters = self.clusters, None
        if clusters is not None:
            await clusters.stop()
        await super().stop(grace)


class HostServer(Hosting, Server):
    """`kubist serve --clusters`."""
