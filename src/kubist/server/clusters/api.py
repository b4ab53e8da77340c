"""`/kubist/v1/clusters` of a host: creates, lists and deletes clusters."""

from __future__ import annotations

from pathlib import Path

from kubist.base.http.messages import Response
from kubist.base.offload import LONG, away
from kubist.model.meta.object import Object
from kubist.server.clusters import openapi, spec
from kubist.server.clusters.cluster import Cluster
from kubist.server.clusters.clusters import Clusters
from kubist.testbench.control_api.call import Call
from kubist.testbench.control_api.control_api import ControlAPI, json_response


class ClustersAPI:
    """Operations of the control API on clusters."""

    def __init__(self, clusters: Clusters, root_ca_file: str) -> None:
        self._clusters = clusters
        self._root_ca_file = root_ca_file

    def register(self, control: ControlAPI) -> None:
        control.add("GET", "clusters", self._list)
        control.add("POST", "clusters", self._create)
        control.add("GET", "clusters/{name}", self._get)
        control.add("DELETE", "clusters/{name}", self._delete)
        control.add("GET", "clusters/{name}/kubeconfig", self._kubeconfig)
        control.describe(openapi.SCHEMAS, openapi.BODIES, openapi.RESULTS)

    async def _list(self, _: Call) -> Object:
        """All clusters."""
        found = self._clusters.found
        return {"items": [found[name].shown() for name in sorted(found)]}

    async def _create(self, call: Call) -> Response:
        """Creates a cluster and returns its kubeconfig."""
        # Long manifests in YAML are parsed in a worker thread.
        asked = await away(len(call.request.body) > LONG, spec.read, call, self._clusters.has_disk)
        made = await self._clusters.create(asked)
        return json_response(made.shown() | {"kubeconfig": self._kubeconfig_of(made, call)}, 201)

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
