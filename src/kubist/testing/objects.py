"""Verbs of the API for tests: create, get, list, update, patch, scale, delete and load, as a cluster or a user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from kubist.base.hints import did_you_mean
from kubist.base.offload import on_loop
from kubist.model.meta.object import Object
from kubist.testbench.control_api.control_api import TEST_AGENT
from kubist.testing import manifests as reading
from kubist.testing import references
from kubist.testing.errors import Refused
from kubist.testing.manifests import Source
from kubist.testing.references import Reference

if TYPE_CHECKING:
    from kubist.testing.cluster import Cluster
    from kubist.testing.offline.manifests import Manifest

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

Objects = list[Object]
Names = list[str]
Call = TypeVar("Call", bound=Callable[..., Any])
MANAGER = TEST_AGENT
"""Field manager of a test."""
DELETE_OPTIONS = ("dryRun", "gracePeriodSeconds", "orphanDependents", "preconditions", "propagationPolicy")
PATCH_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


def blocking(call: Call) -> Call:
    """Rejects a call from the event loop that runs the server, because it would wait for itself."""

    @wraps(call)
    def checked(caller: ObjectVerbs, *args: Any, **kwargs: Any) -> Any:
        loop = caller._cluster.loop
        if loop is not None and on_loop() is loop:
            name = call.__name__
            raise RuntimeError(
                f"cluster.{name}() blocks the event loop that runs the server; "
                f"use `await asyncio.to_thread(cluster.{name}, …)`, or start with `async with Cluster()`"
            )
        return call(caller, *args, **kwargs)

    return cast("Call", checked)


class ObjectVerbs:
    """Reads and writes of objects. An object is named `pod/web`, or is given itself: `cluster.delete(pod)`.

    Each call is one request and returns the object of its response. An error response raises `Refused`.
    """

    @property
    def _cluster(self) -> Cluster:
        raise NotImplementedError

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> Any:
        """Sends a request and returns the JSON of the response. Raises `Refused`."""
        raise NotImplementedError

    @blocking
    def create(self, manifest: Source, *, namespace: str = "default") -> Object:
        """Creates one object: a dict, a text or a file. With `metadata.generateName` the server generates its name."""
        document = reading.read_one(manifest)
        resource = reading.resource_of(document, self._cluster.inner.resources, is_named=False)
        path = references.path_of(resource, document.namespace or namespace)
        return self._object("POST", path, document.value)

    @blocking
    def get(self, reference: Reference, namespace: str = "default") -> Object:
        """An object by a name such as `pod/web` or `deployments.apps/web`; the newest state of a given object."""
        return self._object("GET", self._path(reference, namespace))

    @blocking
    def list(
        self,
        kind: str,
        namespace: str | None = "default",
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> Objects:
        """Objects of a kind: `list("pods")`, `list("pods", label_selector="app=web")`, `list("pods -l app=web -A")`.

        `namespace=None` lists all namespaces. Every object has its apiVersion and kind.
        """
        selection = (
            references.select(kind, namespace)
            if " " in kind.strip()
            else references.Selection(kind, namespace)
        )
        selection.label_selector = label_selector or selection.label_selector
        selection.field_selector = field_selector or selection.field_selector
        resource = references.resource_of(self._cluster.inner.resources, selection.kind)
        path = references.path_of(resource, selection.namespace) + selection.query()
        named = {"apiVersion": resource.api_version, "kind": resource.kind}
        return [{**named, **item} for item in self.request("GET", path)["items"]]

    @blocking
    def update(self, obj: Object, *, subresource: str = "", namespace: str = "default") -> Object:
        """Replaces an object. A stale `metadata.resourceVersion` is a conflict: `Refused` with code 409."""
        return self._object("PUT", self._path(obj, namespace, subresource), obj)

    @blocking
    def patch(
        self,
        reference: Reference,
        patch: Object | Sequence[Object],
        *,
        type: Literal["json", "merge", "strategic"] | None = None,
        subresource: str = "",
        namespace: str = "default",
    ) -> Object:
        """Changes an object: `patch("pod/web", {"metadata": {"labels": {"app": "web"}}})`.

        The default type of a list is a JSON patch; of a dict, a strategic merge patch for built-in kinds and a merge
        patch for custom resources. `subresource="status"` changes the status.
        """
        if type is None:
            resource, *_ = references.locate(self._cluster.inner.resources, reference, namespace)
            type = "json" if not isinstance(patch, dict) else "merge" if resource.custom else "strategic"
        elif type not in PATCH_TYPES:
            raise ValueError(f'there is no patch type "{type}"; it is one of {", ".join(PATCH_TYPES)}')
        path = self._path(reference, namespace, subresource)
        return self._object("PATCH", path, patch, PATCH_TYPES[type])

    @blocking
    def scale(self, reference: Reference, replicas: int, *, namespace: str = "default") -> Object:
        """Sets the number of replicas through the subresource `scale`. Returns the Scale."""
        path = self._path(reference, namespace, "scale")
        return self._object("PATCH", path, {"spec": {"replicas": replicas}}, PATCH_TYPES["merge"])

    @blocking
    def delete(self, reference: Reference, namespace: str = "default", **options: Any) -> Object:
        """Deletes an object. `options` are the fields of DeleteOptions, such as `propagationPolicy="Foreground"`."""
        for option in options:
            if option not in DELETE_OPTIONS:
                hint = did_you_mean(option, DELETE_OPTIONS)
                raise TypeError(f'DeleteOptions has no field "{option}"{hint}')
        body = {"kind": "DeleteOptions", "apiVersion": "v1", **options}
        return self._object("DELETE", self._path(reference, namespace), body)

    @blocking
    def load(self, *manifests: Source, namespace: str = "default") -> Objects:
        """Applies manifests: files or directories of YAML or JSON, their text, or objects.

        Subdirectories are included. Namespaces and CRDs come first, and the other objects follow when the CRDs are
        served. Returns the applied objects in the order of the manifests. A directory without a manifest is an error.
        """
        documents = reading.read(manifests)
        applied: dict[int, Object] = {}
        pending: Names = []
        for index in sorted(range(len(documents)), key=lambda index: reading.comes_later(documents[index])):
            manifest = documents[index]
            if pending and reading.comes_later(manifest):
                self._await_crds(pending)
            applied[index] = self._apply(manifest, namespace)
            if manifest.kind == "CustomResourceDefinition":
                pending.append(manifest.name)
        self._await_crds(pending)
        return [applied[index] for index in range(len(documents))]

    def _apply(self, manifest: Manifest, namespace: str) -> Object:
        resource = reading.resource_of(manifest, self._cluster.inner.resources)
        path = references.path_of(resource, manifest.namespace or namespace, manifest.name)
        query = f"?fieldManager={MANAGER}&force=true"
        try:
            return self._object("PATCH", path + query, manifest.value, "application/apply-patch+yaml")
        except Refused as error:
            if where := reading.place(manifest):
                error.add_note(f"The manifest is in {where.removesuffix(': ')}.")
            raise

    def _await_crds(self, names: Names) -> None:
        while names:
            self._cluster.wait(f"crd/{names.pop(0)}", "Established")

    def _path(self, reference: Reference, namespace: str, subresource: str = "") -> str:
        path = references.path_of(*references.locate(self._cluster.inner.resources, reference, namespace))
        return f"{path}/{subresource}" if subresource else path

    def _object(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> Object:
        answer: Object = self.request(method, path, body, content_type)
        return answer
