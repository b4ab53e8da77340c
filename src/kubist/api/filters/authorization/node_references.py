"""Index of the objects that the pods of each node refer to, kept up to date by the cache. Used by the Node
authorizer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Change, Collection, Entry

if TYPE_CHECKING:
    from kubist.api.objectstore.registry import Registry

MIRROR = "kubernetes.io/config.mirror"
"""Annotation of mirror pods. A node creates these itself, so they must not give it any permissions."""

Reference = tuple[str, str, str]
"""Resource, namespace, name."""


class NodeReferences:
    """Objects that the pods on each node refer to, and the persistent volumes of their claims."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._pods: Collection | None = None
        self._entries: Any = None
        self._nodes: dict[Reference, dict[str, int]] = {}
        self._of: dict[str, tuple[str, frozenset[Reference]]] = {}

    def by(self, node: str, resource: str, namespace: str, name: str) -> bool:
        self._load()
        match resource:
            case "pods":
                pod = self._registry.get("pods", name, namespace)
                return pod is not None and (pod.get("spec") or {}).get("nodeName") == node
            case "volumeattachments" | "resourceslices" | "podcertificaterequests":
                return self._belongs(node, resource, namespace, name)
            case "persistentvolumes":
                volume = self._registry.get("persistentvolumes", name)
                return volume is not None and self._claimed(node, volume)
        if node in self._nodes.get((resource, namespace, name), ()):
            return True
        return resource == "secrets" and any(
            (namespace, name) in _volume_secrets(volume) and self._claimed(node, volume)
            for volume in self._registry.list("persistentvolumes", None)
        )

    def _belongs(self, node: str, resource: str, namespace: str, name: str) -> bool:
        groups = {"volumeattachments": "storage.k8s.io", "resourceslices": "resource.k8s.io"}
        group = groups.get(resource, "certificates.k8s.io")
        obj = self._registry.get(resource, name, namespace, group=group)
        return obj is not None and (obj.get("spec") or {}).get("nodeName") == node

    def _claimed(self, node: str, volume: Object) -> bool:
        claim = volume["spec"].get("claimRef") or {}
        wanted = ("persistentvolumeclaims", claim.get("namespace", ""), claim.get("name", ""))
        return node in self._nodes.get(wanted, ())

    def _load(self) -> None:
        if self._pods is None:
            resource = self._registry.resources.stored("", "pods")
            assert resource is not None
            self._pods = self._registry.collection(resource)
            self._pods.subscribe(self, self._changed)
        if self._pods.entries is not self._entries:
            self._entries = self._pods.entries
            self._nodes.clear()
            self._of.clear()
            for entry in self._entries.values():
                self._add(entry)

    def _changed(self, changes: list[Change]) -> None:
        for change in changes:
            entry = change.new or change.old
            assert entry is not None
            node, references = self._of.pop(entry.key, ("", frozenset()))
            for reference in references:
                count = self._nodes[reference]
                count[node] -= 1
                if not count[node]:
                    del count[node]
                if not count:
                    del self._nodes[reference]
            if change.new is not None:
                self._add(change.new)

    def _add(self, entry: Entry) -> None:
        pod = entry.object()
        node = (pod.get("spec") or {}).get("nodeName", "")
        if not node or MIRROR in (pod["metadata"].get("annotations") or {}):
            return
        references = frozenset(_references(pod))
        self._of[entry.key] = (node, references)
        for reference in references:
            count = self._nodes.setdefault(reference, {})
            count[node] = count.get(node, 0) + 1


def _references(pod: Object) -> Iterator[Reference]:
    """All objects of its namespace that a pod refers to."""
    namespace, spec = pod["metadata"]["namespace"], pod["spec"]
    if spec.get("serviceAccountName"):
        yield "serviceaccounts", namespace, spec["serviceAccountName"]
    for secret in spec.get("imagePullSecrets") or ():
        yield "secrets", namespace, secret.get("name", "")
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(kind) or ():
            for source in container.get("envFrom") or ():
                yield from _sources(namespace, source.get("secretRef"), source.get("configMapRef"))
            for variable in container.get("env") or ():
                source = variable.get("valueFrom") or {}
                yield from _sources(namespace, source.get("secretKeyRef"), source.get("configMapKeyRef"))
    for volume in spec.get("volumes") or ():
        yield from _volume_references(pod, namespace, volume)
    status = pod.get("status") or {}
    for claim in [*(spec.get("resourceClaims") or ()), *(status.get("resourceClaimStatuses") or ())]:
        if claim.get("resourceClaimName"):
            yield "resourceclaims", namespace, claim["resourceClaimName"]
    extended = status.get("extendedResourceClaimStatus") or {}
    if extended.get("resourceClaimName"):
        yield "resourceclaims", namespace, extended["resourceClaimName"]


def _sources(namespace: str, secret: Object | None, config_map: Object | None) -> Iterator[Reference]:
    if secret:
        yield "secrets", namespace, secret.get("name", "")
    if config_map:
        yield "configmaps", namespace, config_map.get("name", "")


def _volume_references(pod: Object, namespace: str, volume: Object) -> Iterator[Reference]:
    for kind, source in volume.items():
        if not isinstance(source, dict):
            continue
        match kind:
            case "secret":
                yield "secrets", namespace, source.get("secretName", "")
            case "configMap":
                yield "configmaps", namespace, source.get("name", "")
            case "persistentVolumeClaim":
                yield "persistentvolumeclaims", namespace, source.get("claimName", "")
            case "ephemeral":
                claim = f"{pod['metadata']['name']}-{volume['name']}"
                yield "persistentvolumeclaims", namespace, claim
            case "azureFile":
                yield "secrets", namespace, source.get("secretName", "")
            case "projected":
                for part in source.get("sources") or ():
                    yield from _sources(namespace, part.get("secret"), part.get("configMap"))
            case _:
                ref = source.get("secretRef") or source.get("nodePublishSecretRef")
                yield from _sources(namespace, ref, None)


def _volume_secrets(volume: Object) -> set[tuple[str, str]]:
    """Namespace and name of the secrets that a persistent volume is mounted with."""
    spec = volume["spec"]
    home = (spec.get("claimRef") or {}).get("namespace", "")
    found = set()
    for source in spec.values():
        if not isinstance(source, dict):
            continue
        if source.get("secretName"):
            found.add((source.get("secretNamespace") or home, source["secretName"]))
        for name, ref in source.items():
            if name.endswith("ecretRef") and isinstance(ref, dict) and ref.get("name"):
                found.add((ref.get("namespace") or home, ref["name"]))
    return found
