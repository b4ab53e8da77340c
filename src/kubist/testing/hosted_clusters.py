"""Many clusters on the port of one host: `kubist_host.clusters.create("team-a")`."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from kubist.base import files
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.server.server import Server
from kubist.testing import manifests as reading
from kubist.testing import running_test
from kubist.testing.cluster import Cluster
from kubist.testing.connections import Connections
from kubist.testing.errors import Refused

if TYPE_CHECKING:
    from kubist.server.clusters.hosting import Hosting

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

PATH = "/kubist/v1/clusters"
FIELDS = {"time_to_live": "timeToLive", "requests_per_second": "requestsPerSecond"}
"""Arguments whose field has another name."""


class HostedClusters:
    """Clusters below /clusters/NAME of a host. The arguments have the names of the HTTP fields."""

    def __init__(self, host: Cluster) -> None:
        self._host = host

    def create(
        self,
        name: str = "",
        *,
        fork: str | LogicalCluster = "",
        snapshot: str = "",
        backup: str | Path = "",
        manifests: Sequence[str | Path | Object] = (),
        storage: str = "memory",
        time_to_live: str | float | None = None,
        controllers: Sequence[str] | None = None,
        workloads: bool | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> LogicalCluster:
        """Creates a cluster: empty, or with the content of another cluster, a snapshot, a backup or manifests.

        `limits` may have `objects`, `bytes` and `requests_per_second`. The cluster is deleted by `stop()`, at the
        end of a `with` block, or when its time to live is over.
        """
        arguments: dict[str, Any] = {
            "name": name,
            "fork": fork.name if isinstance(fork, LogicalCluster) else fork,
            "snapshot": snapshot,
            "backup": str(Path(backup).absolute()) if backup else "",
            "manifests": reading.documents(manifests),
            "storage": storage,
            "time_to_live": time_to_live,
            "controllers": None if controllers is None else list(controllers),
            "workloads": workloads,
            "limits": {FIELDS.get(key, key): value for key, value in (limits or {}).items()},
        }
        body = {
            FIELDS.get(key, key): value for key, value in arguments.items() if value not in ("", None, [], {})
        }
        if controllers is not None:
            body["controllers"] = arguments["controllers"]  # an empty list means no control loops
        made = LogicalCluster(self._host, self._host.request("POST", PATH, body))
        made.run(made._join_test())
        return made

    def __getitem__(self, name: str) -> LogicalCluster:
        state = self._host.request("GET", f"{PATH}/{name}")
        kubeconfig = self._host.request("GET", f"{PATH}/{name}/kubeconfig")
        return LogicalCluster(self._host, state | {"kubeconfig": kubeconfig})

    def __iter__(self) -> Iterator[str]:
        """Names of all clusters."""
        return iter([item["name"] for item in self.list()])

    def __contains__(self, name: str) -> bool:
        return name in list(self)

    def __len__(self) -> int:
        return len(self.list())

    def list(self) -> list[Object]:
        """All clusters as the control API shows them: name, state, storage and so on."""
        items: list[Object] = self._host.request("GET", PATH)["items"]
        return items

    def delete(self, name: str) -> None:
        """Deletes a cluster with all its data."""
        self._host.request("DELETE", f"{PATH}/{name}")


class LogicalCluster(Cluster):
    """A cluster below /clusters/NAME of a host. It has its own users, objects, clock and faults."""

    def __init__(self, host: Cluster, made: Object) -> None:
        super().__init__(host.config)
        self.host = host
        self.name: str = made["name"]
        self._document: Object = made["kubeconfig"]
        self._prefix = made["path"]
        self.loop = host.loop
        self._identity = host.identity

    def __repr__(self) -> str:
        return f"<cluster {self.name}>"

    def start(self) -> None:
        """Does nothing: the cluster runs, or is loaded by its next request."""

    def stop(self) -> None:
        """Deletes the cluster."""
        super().stop()
        if self.loop is not None and self.host.loop is not None:
            with contextlib.suppress(
                Refused
            ):  # it was deleted by another client, or its time to live is over
                self.host.request("DELETE", f"{PATH}/{self.name}")
        self.loop = None

    async def _join_test(self) -> None:
        running_test.join(self.inner, self.name)

    @property
    def _connections(self) -> Connections:
        return self.host._connections

    def fork(self) -> Self:
        """A second cluster of the same host with the same content."""
        return cast("Self", self.host.clusters.create(fork=self.name))

    @property
    def inner(self) -> Server:
        """The server object itself, loaded if needed. Use it in its event loop only."""
        hosting = cast("Hosting", self.host.inner)
        assert hosting.clusters is not None
        try:
            cluster = hosting.clusters.get(self.name)
            return cluster.server or self.run(cluster.running())
        except APIError as error:
            raise Refused(error.code, error.status()) from None

    @property
    def port(self) -> int:
        return self.host.port

    @property
    def url(self) -> str:
        return self.host.url + self._prefix

    @property
    def token(self) -> str:
        """Bearer token of the cluster's administrator."""
        token: str = self._document["users"][0]["user"]["token"]
        return token

    @cached_property
    def kubeconfig(self) -> Path:
        """Path of a kubeconfig file with the credentials of the cluster's administrator."""
        path = self.host.identity.directory / f"kubeconfig-{self.port}-{self.name}"
        files.write(path, json.dumps(self._document).encode())
        self.close_later(lambda: path.unlink(missing_ok=True))
        return path

    def kubeconfig_document(self) -> dict[str, Any]:
        return copy.deepcopy(self._document)
