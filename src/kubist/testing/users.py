"""Users and service accounts of a cluster: their credentials, and clients that act as them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubist.base import files
from kubist.model.meta.object import Object
from kubist.testing.clients import Clients
from kubist.testing.objects import ObjectVerbs

if TYPE_CHECKING:
    from kubist.testing.cluster import Cluster

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

Rules = Sequence[Mapping[str, Sequence[str]]]
"""RBAC rules: `[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]`."""


class ClusterUser(ObjectVerbs):
    """A user of a cluster, with the credentials that a client or an operator under test needs. It has the same verbs
    as the cluster: `alice.get("pod/web")`."""

    def __init__(self, cluster: Cluster, name: str, token: str, document: Object) -> None:
        self.cluster = cluster
        self.name = name
        self.token = token
        self._document = document

    def __repr__(self) -> str:
        return f"<user {self.name}>"

    @property
    def _cluster(self) -> Cluster:
        return self.cluster

    @property
    def url(self) -> str:
        return self.cluster.url

    @property
    def ca(self) -> Path:
        return self.cluster.ca

    @cached_property
    def kubeconfig(self) -> Path:
        """Path of a kubeconfig file of this user."""
        safe = "".join(char if char.isalnum() else "-" for char in self.name)[:64]
        path = self.cluster.kubeconfig.with_name(f"kubeconfig-{self.cluster.port}-{safe}")
        files.write(path, json.dumps(self._document).encode())
        return path

    @cached_property
    def clients(self) -> Clients:
        """Clients of the installed libraries that act as this user."""
        clients = Clients(self)
        self.cluster.close_later(clients.close)
        return clients

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> Any:
        """Sends a request as this user and returns the JSON of the response. Raises `Refused`."""
        return self.cluster.request(method, path, body, content_type, token=self.token)


def make_user(
    cluster: Cluster, name: str, groups: Sequence[str], rules: Rules, namespace: str
) -> ClusterUser:
    body = {"name": name, "groups": list(groups), "rules": list(rules), "namespace": namespace}
    made = cluster.request("POST", "/kubist/v1/users", body)
    return ClusterUser(cluster, name, made["token"], made["kubeconfig"])


def make_service_account(cluster: Cluster, name: str, namespace: str, rules: Rules) -> ClusterUser:
    """Creates the ServiceAccount and its namespace if they are missing. Its rules hold in the whole cluster."""
    body = {"name": name, "namespace": namespace, "rules": [dict(rule) for rule in rules]}
    made = cluster.request("POST", "/kubist/v1/serviceaccounts", body)
    return ClusterUser(cluster, made["user"], made["token"], made["kubeconfig"])
