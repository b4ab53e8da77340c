"""Node authorization mode: a node may read the objects that its pods need, and write its own objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from kubist.api.bootstrap.builtin import fixed_objects
from kubist.api.filters.authorization.policy_rules import Rule
from kubist.api.filters.authorization.query import AuthorizationQuery
from kubist.api.resources.context import Rules, User
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta.object import Object
from kubist.model.meta.well_known import NODE_LEASES
from kubist.storage.cache.cache import Change, Collection, Entry

if TYPE_CHECKING:
    from kubist.api.object_store.registry import Registry


PREFIX = "system:node:"
GROUP = "system:nodes"

Opinion = tuple[bool | None, str]


class Nodes:
    """Authorizer for users of the group system:nodes."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._needs = NodeReferences(registry)
        role = next(
            obj
            for obj in fixed_objects("")
            if (obj["kind"], obj["metadata"]["name"]) == ("ClusterRole", "system:node")
        )
        self._rules = [Rule(rule) for rule in role["rules"]]
        self._special: dict[tuple[str, str], Callable[[str, AuthorizationQuery], Opinion]] = {
            ("", "secrets"): self._read_needed,
            ("", "configmaps"): self._read_needed,
            ("", "persistentvolumeclaims"): self._claim,
            ("", "persistentvolumes"): self._get_needed,
            ("resource.k8s.io", "resourceclaims"): self._get_needed,
            ("storage.k8s.io", "volumeattachments"): self._get_needed,
            ("", "serviceaccounts"): self._service_account,
            ("coordination.k8s.io", "leases"): self._lease,
            ("storage.k8s.io", "csinodes"): self._csi_node,
            ("resource.k8s.io", "resourceslices"): self._resource_slice,
            ("", "nodes"): self._node,
            ("", "pods"): self._pod,
            ("certificates.k8s.io", "podcertificaterequests"): self._certificate_request,
        }

    async def decide(self, attributes: AuthorizationQuery) -> Opinion:
        user = attributes.user
        if GROUP not in user.groups or not user.name.startswith(PREFIX):
            return None, ""
        node = user.name[len(PREFIX) :]
        if not node:
            return None, f"unknown node for user {quoted(user.name)}"
        if attributes.is_resource:
            special = self._special.get((attributes.group, attributes.resource))
            if special is not None:
                return special(node, attributes)
            question = (attributes.verb, attributes.group, attributes.resource, attributes.subresource)
            allowed = any(
                rule.allows(*question) and (not rule.names or attributes.name in rule.names)
                for rule in self._rules
            )
        else:
            allowed = any(rule.allows_path(attributes.verb, attributes.path) for rule in self._rules)
        return (True, "") if allowed else (None, "")

    async def rules(self, user: User, namespace: str) -> Rules:
        if GROUP in user.groups and user.name.startswith(PREFIX):
            return Rules([], [], True, "node authorizer does not support user rule resolution")
        return Rules([], [])

    def _needed(self, node: str, attributes: AuthorizationQuery) -> Opinion:
        if not attributes.name:
            return None, "No Object name found"
        if self._needs.by(node, attributes.resource, attributes.namespace, attributes.name):
            return True, ""
        return None, f"no relationship found between node '{node}' and this object"

    def _read_needed(self, node: str, attributes: AuthorizationQuery) -> Opinion:
        if attributes.verb not in ("get", "list", "watch"):
            return None, "can only read resources of this type"
        if attributes.subresource:
            return None, "cannot read subresource"
        if not attributes.namespace:
            return None, "can only read namespaced object of this type"
        return self._needed(node, attributes)

    def _get_needed(self, node: str, attributes: AuthorizationQuery) -> Opinion:
        if attributes.verb != "get":
            return None, "can only get individual resources of this type"
        if attributes.subresource:
            return None, "cannot get subresource"
        return self._needed(node, attributes)

    def _claim(self, node: str, attributes: AuthorizationQuery) -> Opinion:
        if attributes.subresource != "status":
            return self._get_needed(node, attributes)
        if attributes.verb not in ("update", "patch"):
            return None, "can only get/update/patch this type"
        return self._needed(node, attributes)

    def _service_account(self, node: str, attributes: AuthorizationQuery) -> Opinion:
        if attributes.verb == "get" and not attributes.subresource:
            return self._read_needed(node, attributes)
        if attributes.verb != "create" or not attributes.name:
            return None, "can only create tokens for individual service accounts"
        if attributes.subresource != "token":
            return None, "can only create token subresource of serviceaccount"
        return self._needed(node, attributes)

    def _lease(self, node: str, attributes: AuthorizationQuery) -> Opinion:
        if attributes.verb not in ("get", "create", "update", "patch", "delete"):
            return None, "can only get, create, update, patch, or delete a node lease"
        if attributes.namespace != NODE_LEASES:
            return None, f"can only access leases in the {quoted(NODE_LEASES)} system namespace"
        if attributes.verb != "create" and attributes.name != node:
            return None, "can only access node lease with the same name as the requesting node"
        return True, ""

    def _csi_node(self, node: str, attributes: AuthorizationQuery) -> Opinion:
        if attributes.verb not in ("get", "create", "update", "patch", "delete"):
            return None, "can only get, create, update, patch, or delete a CSINode"
        if attributes.subresource:
            return None, "cannot authorize CSINode subresources"
        if attributes.verb != "create" and attributes.name != node:
            return None, "can only access CSINode with the same name as the requesting node"
        return True, ""

    def _resource_slice(self, node: str, attributes: AuthorizationQuery) -> Opinion:
        if attributes.subresource:
            return None, "cannot authorize ResourceSlice subresources"
        match attributes.verb:
            case "create":
                return True, ""
            case "get" | "update" | "patch" | "delete":
                return self._needed(node, attributes)
            case "watch" | "list" | "deletecollection":
                if _selects(attributes, "spec.nodeName", node):
                    return True, ""
                return (
                    None,
                    "can only list/watch/deletecollection resourceslices with nodeName field selector",
                )
        verbs = "get, watch, list, create, update, patch, delete, deletecollection"
        return None, f"only the following verbs are allowed for a ResourceSlice: {verbs}"

    def _certificate_request(self, node: str, attributes: AuthorizationQuery) -> Opinion:
        if attributes.subresource:
            return None, "nodes may not access the status subresource of PodCertificateRequests"
        match attributes.verb:
            case "create":
                return True, ""
            case "get":
                return self._needed(node, attributes)
            case "list" | "watch":
                if _selects(attributes, "spec.nodeName", node):
                    return True, ""
                return None, "can only list/watch podcertificaterequests with nodeName field selector"
        return None, f"nodes may not {attributes.verb} podcertificaterequests"

    def _node(self, node: str, attributes: AuthorizationQuery) -> Opinion:
        if attributes.subresource == "status":
            return (True, "") if attributes.verb in ("update", "patch") else (None, "")
        if attributes.subresource:
            return None, ""
        if attributes.verb in ("create", "update", "patch"):
            return True, ""
        if attributes.verb in ("get", "list", "watch"):
            if attributes.name == node:
                return True, ""
            what = f"'{attributes.name}'" if attributes.name else "all nodes"
            return None, f"node '{node}' cannot read {what}, only its own Node object"
        return None, ""

    def _pod(self, node: str, attributes: AuthorizationQuery) -> Opinion:
        match attributes.subresource, attributes.verb:
            case "", "get":
                return self._needed(node, attributes)
            case "", "list" | "watch":
                if _selects(attributes, "spec.nodeName", node):
                    return True, ""
                if attributes.name:
                    return self._needed(node, attributes)
                return None, "can only list/watch pods with spec.nodeName field selector"
            case "", "create" | "delete":
                return True, ""
            case ("status", "update" | "patch") | ("eviction", "create"):
                return True, ""
        return None, ""


def _selects(attributes: AuthorizationQuery, field: str, value: str) -> bool:
    terms = (term.replace("==", "=") for term in attributes.field_selector.split(","))
    return f"{field}={value}" in terms


MIRROR = "kubernetes.io/config.mirror"
"""Annotation of mirror pods. A node creates mirror pods itself, so they must not give it any permissions."""

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
        key = ("persistentvolumeclaims", claim.get("namespace", ""), claim.get("name", ""))
        return node in self._nodes.get(key, ())

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
    secrets = set()
    for source in spec.values():
        if not isinstance(source, dict):
            continue
        if source.get("secretName"):
            secrets.add((source.get("secretNamespace") or home, source["secretName"]))
        for name, ref in source.items():
            if name.endswith("ecretRef") and isinstance(ref, dict) and ref.get("name"):
                secrets.add((ref.get("namespace") or home, ref["name"]))
    return secrets
