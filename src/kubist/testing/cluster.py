"""A cluster for a test: a server of its own, and the few things that tests do with clusters all the time."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from kubist.embedded import Server
from kubist.resources import Resource
from kubist.testing import references, snapshot, waiting
from kubist.testing.clients import Clients
from kubist.testing.snapshot import Snapshot
from kubist.testing.waiting import Until

Object = dict[str, Any]
Objects = list[Object]
MANAGER = "kubist-testing"


class Refused(Exception):
    """The server said no; `status` is the Status that it answered."""

    def __init__(self, code: int, status: Object) -> None:
        super().__init__(status.get("message", f"HTTP {code}"))
        self.code = code
        self.status = status


class Cluster(Server):
    """A Kubernetes API server with nothing in it."""

    @cached_property
    def clients(self) -> Clients:
        """Clients of the libraries that are installed: `.kubernetes`, `.lightkube`, `.kr8s`, `.pykube`."""
        return Clients(self)

    def stop(self) -> None:
        self.clients.close()
        connection: http.client.HTTPSConnection | None = self.__dict__.get("_connection")
        if connection is not None:
            connection.close()
        super().stop()

    @cached_property
    def _connection(self) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=str(self.ca))
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=context)

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> Any:
        """One request as the administrator; the answer's JSON. Raises `Refused`."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type}
        self._connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        response = self._connection.getresponse()
        raw = response.read()
        answer = json.loads(raw) if raw[:1] in (b"{", b"[") else raw.decode()
        if response.status >= 400:
            raise Refused(response.status, answer if isinstance(answer, dict) else {"message": answer})
        return answer

    def get(self, reference: str, namespace: str = "default") -> Object:
        """An object by a name such as `pod/web` or `deployments.apps/web`."""
        kind, name = references.split(reference)
        found: Object = self.request("GET", references.path_of(self._resource(kind), namespace, name))
        return found

    def list(self, kind: str, namespace: str = "default") -> Objects:
        listed = self.request("GET", references.path_of(self._resource(kind), namespace))
        items: Objects = listed["items"]
        return items

    def delete(self, reference: str, namespace: str = "default", **options: Any) -> Object:
        """Delete an object; `options` are those of DeleteOptions."""
        kind, name = references.split(reference)
        path = references.path_of(self._resource(kind), namespace, name)
        answer: Object = self.request(
            "DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", **options}
        )
        return answer

    def load(self, *manifests: str | Path | Object, namespace: str = "default") -> Objects:
        """Apply manifests: files or directories of YAML or JSON, their text, or objects. Definitions of custom
        resources are waited for, so that objects of them may follow. The objects as they are then."""
        applied = []
        for obj in documents(manifests):
            group, _, version = obj["apiVersion"].rpartition("/")
            resource = self.inner.api.cluster.find_kind(group, version, obj["kind"])
            if resource is None:
                raise LookupError(f"{obj['apiVersion']} {obj['kind']} is not served")
            metadata = obj["metadata"]
            where = metadata.get("namespace", namespace)
            path = references.path_of(resource, where, metadata["name"])
            query = f"?fieldManager={MANAGER}&force=true"
            applied.append(self.request("PATCH", path + query, obj, "application/apply-patch+yaml"))
            if obj["kind"] == "CustomResourceDefinition":
                self.wait(f"crd/{metadata['name']}", "Established")
        return applied

    def wait(
        self, reference: str, until: Until = "Ready", *, namespace: str = "default", timeout: float = 10.0
    ) -> Object:
        """Until an object has a condition (`Ready`), is gone (`delete`), or is as a function of it wants it."""
        return self.run(self._wait(reference, until, namespace, timeout))

    async def wait_async(
        self, reference: str, until: Until = "Ready", *, namespace: str = "default", timeout: float = 10.0
    ) -> Object:
        """`wait` for tests that are coroutines, whichever event loop they run in."""
        return await asyncio.to_thread(self.wait, reference, until, namespace=namespace, timeout=timeout)

    async def _wait(self, reference: str, until: Until, namespace: str, timeout: float) -> Object:
        kind, name = references.split(reference)
        return await waiting.wait(self.inner, self._resource(kind), namespace, name, until, timeout)

    def snapshot(self) -> Snapshot:
        """Everything in the store, to go back to."""
        return self.run(snapshot.take(self.inner.store))

    def restore(self, taken: Snapshot) -> None:
        """Go back to a snapshot. Watchers see the changes; versions go on rising."""
        self.run(snapshot.restore_calmly(self.inner.store, taken))

    def _resource(self, kind: str) -> Resource:
        return references.resource_of(self.inner.resources, kind)


def documents(manifests: Iterable[str | Path | Object]) -> Iterable[Object]:
    """The objects in manifests, lists taken apart."""
    for manifest in manifests:
        if isinstance(manifest, dict):
            found: list[Any] = [manifest]
        else:
            found = [document for text in _texts(manifest) for document in yaml.safe_load_all(text)]
        for document in found:
            if not document:
                continue
            if document.get("kind", "").endswith("List") and "items" in document:
                yield from document["items"]
            else:
                yield document


def _texts(manifest: str | Path) -> list[str]:
    if isinstance(manifest, str) and ("\n" in manifest or manifest.lstrip().startswith("{")):
        return [manifest]
    path = Path(manifest)
    if path.is_dir():
        return [
            file.read_text() for file in sorted(path.iterdir()) if file.suffix in (".yaml", ".yml", ".json")
        ]
    return [path.read_text()]
