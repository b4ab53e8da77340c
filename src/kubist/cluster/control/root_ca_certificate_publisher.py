"""Root CA publisher: the config map `kube-root-ca.crt` in every namespace, with which pods verify the API server."""

from __future__ import annotations

from pathlib import Path

from kubist.api.object_client import ObjectClient
from kubist.cluster.control.loop import Loop, entry_of
from kubist.model.meta.status import APIError
from kubist.storage.cache.cache import Change

NAME = "kube-root-ca.crt"
DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as "
    "the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of "
    "Kubernetes clusters."
)


class RootCertificates(Loop):
    name = "root-ca-certificate-publisher"

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        path = self.config.root_ca_file
        self._bundle = Path(path).read_text() if path else ""

    def follow(self) -> None:
        if self._bundle:
            self.watch("namespaces", self._namespace_changed)
            self.watch("configmaps", self._config_map_changed)

    def _namespace_changed(self, change: Change) -> None:
        if change.new is not None:
            self.queue.add(change.new.name)

    def _config_map_changed(self, change: Change) -> None:
        entry = entry_of(change)
        if entry.name == NAME:
            self.queue.add(entry.namespace)

    async def reconcile(self, key: str) -> None:
        namespace = self.client.get("namespaces", key)
        if namespace is None or "deletionTimestamp" in namespace["metadata"]:
            return
        data = {"ca.crt": self._bundle}
        config_map = self.client.get("configmaps", NAME, key)
        if config_map is None:
            annotations = {"kubernetes.io/description": DESCRIPTION}
            new = {"metadata": {"name": NAME, "annotations": annotations}, "data": data}
            try:
                await self.client.create("configmaps", new, key)
            except APIError as error:
                if error.reason not in ("AlreadyExists", "NotFound"):
                    raise
        elif config_map.get("data") != data:
            await self.client.update("configmaps", NAME, key, lambda new: {**new, "data": data})
