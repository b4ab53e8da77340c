"""Host: a server whose socket also serves the clusters below /clusters/NAME. `/kubist/v1/clusters` creates them."""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Mapping
from pathlib import Path

from kubist.api.config import Config
from kubist.api.representation.status import render_status
from kubist.base.clock import CURRENT
from kubist.base.http.messages import Answer, Application, HangUp, Request, Response
from kubist.base.listening import reachable
from kubist.base.offload import LONG, away
from kubist.errors import InvalidSettings
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.server.clusters import spec
from kubist.server.clusters.cluster import GROUP, RESOURCE, Cluster, Host
from kubist.server.clusters.life_cycle import Clusters
from kubist.server.server import Server
from kubist.storage.store import StoreError
from kubist.testbench.control_api.control_api import Call, ControlAPI, Operation

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
    """Mixin: a server that has clusters. It precedes the server's class in the list of bases."""

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
        self._router = Router(self, clusters.by_name)
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


log = logging.getLogger("kubist.clusters")

PREFIX = "/clusters/"


class Router:
    """Application of a host."""

    def __init__(self, host: Server, clusters: Mapping[str, Cluster]) -> None:
        self._host = host
        self._clusters = clusters

    def __call__(self, request: Request) -> Awaitable[Answer]:
        if request.path.startswith(PREFIX) and len(request.path) > len(PREFIX):
            return self._route(request)
        # The connection may have served a cluster with a different clock before.
        CURRENT.set(self._host.api.clock)
        return self._host.application(request)

    async def _route(self, request: Request) -> Answer:
        name, _, rest = request.path[len(PREFIX) :].partition("/")
        try:
            cluster = self._clusters.get(name)
            if cluster is None:
                # Nobody authenticates this client, so it may send one request on an HTTP/2 connection.
                request.retires = True
                raise status.not_found(GROUP, RESOURCE, name[:253])
            return await cluster.answer(request, f"/{rest}")
        except HangUp:
            raise
        except status.APIError as error:
            return _failure(request, error)
        except (StoreError, OSError, ValueError) as error:
            log.error("the cluster %s cannot be loaded: %s", name, error)
            return _failure(request, status.unavailable(f"the cluster {name} cannot be loaded"))
        except Exception:
            log.exception("the cluster %s failed on %s %s", name, request.method, request.path)
            return _failure(request, status.internal_error("the request failed unexpectedly"))


def _failure(request: Request, error: status.APIError) -> Response:
    """Response for an error outside a cluster's own application."""
    body, content_type = render_status(request, error.status())
    headers = [(b"Content-Type", content_type.encode())]
    headers += [(name.encode(), value.encode()) for name, value in error.headers]
    return Response(error.code, headers, body)


class ClustersAPI:
    """Operations of the control API on clusters."""

    def __init__(self, clusters: Clusters, root_ca_file: str) -> None:
        self._clusters = clusters
        self._root_ca_file = root_ca_file

    def register(self, control: ControlAPI) -> None:
        control.describe(spec.SCHEMAS)
        control.add(
            Operation("GET", "clusters", self._list, result="ClusterList"),
            Operation("POST", "clusters", self._create, body="ClusterSpec", result="NewCluster", code=201),
            Operation("GET", "clusters/{name}", self._get, result="Cluster"),
            Operation("DELETE", "clusters/{name}", self._delete, result="Cluster"),
            Operation("GET", "clusters/{name}/kubeconfig", self._kubeconfig, result="Kubeconfig"),
        )

    async def _list(self, _: Call) -> Object:
        """All clusters."""
        clusters = self._clusters.by_name
        return {"items": [clusters[name].to_json() for name in sorted(clusters)]}

    async def _create(self, call: Call) -> Object:
        """Creates a cluster and returns its kubeconfig."""
        # Long manifests in YAML are parsed in a worker thread.
        request = await away(len(call.request.body) > LONG, spec.read_spec, call, self._clusters.has_disk)
        cluster = await self._clusters.create(request)
        return cluster.to_json() | {"kubeconfig": self._kubeconfig_of(cluster, call)}

    async def _get(self, call: Call) -> Object:
        """One cluster."""
        return self._clusters.get(call.params["name"]).to_json()

    async def _delete(self, call: Call) -> Object:
        """Deletes a cluster with all its data."""
        return (await self._clusters.delete(call.params["name"])).to_json()

    async def _kubeconfig(self, call: Call) -> Object:
        """Kubeconfig of the administrator of a cluster."""
        return self._kubeconfig_of(self._clusters.get(call.params["name"]), call)

    def _kubeconfig_of(self, cluster: Cluster, call: Call) -> Object:
        """Kubeconfig for the address at which the caller reached the host."""
        headers = call.request.headers
        # A small file: a thread would take longer than the event loop.
        ca = Path(self._root_ca_file).read_bytes() if self._root_ca_file else b""
        return cluster.kubeconfig(headers.get("host") or headers.get(":authority", ""), ca)
