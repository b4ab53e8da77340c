"""`/kubist/v1/clusters` of a host: creates, lists and deletes clusters."""

from __future__ import annotations

from pathlib import Path

from kubist.base.offload import LONG, away
from kubist.model.meta.object import Object
from kubist.server.clusters import spec
from kubist.server.clusters.cluster import Cluster
from kubist.server.clusters.clusters import Clusters
from kubist.testbench.control_api.call import Call
from kubist.testbench.control_api.control_api import ControlAPI, Operation


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
        found = self._clusters.found
        return {"items": [found[name].shown() for name in sorted(found)]}

    async def _create(self, call: Call) -> Object:
        """Creates a cluster and returns its kubeconfig."""
        # Long manifests in YAML are parsed in a worker thread.
        request = await away(len(call.request.body) > LONG, spec.read_spec, call, self._clusters.has_disk)
        cluster = await self._clusters.create(request)
        return cluster.shown() | {"kubeconfig": self._kubeconfig_of(cluster, call)}

    async def _get(self, call: Call) -> Object:
        """One cluster."""
        return self._clusters.get(call.params["name"]).shown()

    async def _delete(self, call: Call) -> Object:
        """Deletes a cluster with all its data."""
        return (await self._clusters.delete(call.params["name"])).shown()

    async def _kubeconfig(self, call: Call) -> Object:
        """Kubeconfig of the administrator of a cluster."""
        return self._kubeconfig_of(self._clusters.get(call.params["name"]), call)

    def _kubeconfig_of(self, cluster: Cluster, call: Call) -> Object:
        """Kubeconfig for the address at which the caller reached the host."""
        headers = call.request.headers
        # A small file: a thread would take longer than the event loop.
        ca = Path(self._root_ca_file).read_bytes() if self._root_ca_file else b""
        return cluster.kubeconfig(headers.get("host") or headers.get(":authority", ""), ca)
