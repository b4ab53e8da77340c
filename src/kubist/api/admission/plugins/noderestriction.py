"""NodeRestriction: limits a node's writes to its own Node, Lease, pods and related objects."""

from __future__ import annotations

from collections.abc import Callable

from cryptography import x509

from kubist.api.admission.plugin import CREATE, DELETE, UPDATE, Pending, Plugin, forbidden
from kubist.api.admission.plugins.serviceaccount import secrets_of
from kubist.api.kinds.certificates.pem import read_request
from kubist.api.resources.context import Context, User
from kubist.api.resources.strategy import at
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.model.meta.well_known import NODE_LEASES

PREFIX, GROUP = "system:node:", "system:nodes"
MIRROR = "kubernetes.io/config.mirror"
KUBELET_SIGNERS = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet")
OF_CLAIM_STATUS = ("capacity", "conditions", "allocatedResourceStatuses", "allocatedResources")


def node_of(user: User) -> str | None:
    """Name of the node that the user represents; None if the user is not a node."""
    if not user.name.startswith(PREFIX) or GROUP not in user.groups:
        return None
    return user.name.removeprefix(PREFIX)


class NodeRestriction(Plugin):
    def handles(self, resource: str, operation: str) -> bool:
        return resource.partition("/")[0] in _RULES and operation in (CREATE, UPDATE, DELETE)

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> Pending:
        node = node_of(ctx.user)
        if node is None:
            return None
        if not node:
            raise forbidden(ctx, new, f'could not determine node from user "{ctx.user.name}"')
        resource = ctx.resource
        name = f"{resource.resource}.{resource.group}" if resource.group else resource.resource
        if name == "serviceaccounts":
            return _check_token(ctx, node, new)
        why = _RULES[name](ctx, node, new, old)
        if why:
            raise forbidden(ctx, new, why)
        return None


def _check_pod(ctx: Context, node: str, new: Object | None, old: Object | None) -> str:
    rules = {"": _check_mirror_pod, "status": _check_pod_status, "eviction": _check_eviction}
    rule = rules.get(ctx.subresource)
    if rule is None:
        return f"unexpected pod subresource \"{ctx.subresource}\", only 'status' and 'eviction' are allowed"
    return rule(ctx, node, new, old)


def _check_mirror_pod(ctx: Context, node: str, new: Object | None, old: Object | None) -> str:
    if new is None:
        assert old is not None
        mine = old["spec"].get("nodeName") == node
        return "" if mine else f'node "{node}" can only delete pods with spec.nodeName set to itself'
    if old is not None:
        return f'unexpected operation "UPDATE", node "{node}" can only create and delete mirror pods'
    metadata = new["metadata"]
    if MIRROR not in (metadata.get("annotations") or {}):
        return f'pod does not have "{MIRROR}" annotation, node "{node}" can only create mirror pods'
    if new["spec"].get("nodeName") != node:
        return f'node "{node}" can only create pods with spec.nodeName set to itself'
    owners = metadata.get("ownerReferences") or []
    if len(owners) > 1:
        return f'node "{node}" can only create pods with a single owner reference set to itself'
    if not owners or _identity(owners[0]) != ("v1", "Node", node):
        return f'node "{node}" can only create pods with an owner reference set to itself'
    (owner,) = owners
    if not owner.get("controller"):
        return f'node "{node}" can only create pods with a controller owner reference set to itself'
    if owner.get("blockOwnerDeletion"):
        return f'node "{node}" must not set blockOwnerDeletion on an owner reference'
    node_object = ctx.objects.get("nodes", node)
    if node_object is None:
        raise status.not_found("", "nodes", node)
    uid = node_object["metadata"].get("uid", "")
    if owner.get("uid") != uid:
        return f"node {node} UID mismatch: expected {owner.get('uid', '')} got {uid}"
    referenced = _api_references(new["spec"])
    return f'node "{node}" can not create pods that reference {referenced}' if referenced else ""


def _identity(owner: Object) -> tuple[str, str, str]:
    return owner.get("apiVersion", ""), owner.get("kind", ""), owner.get("name", "")


def _check_pod_status(ctx: Context, node: str, new: Object | None, old: Object | None) -> str:
    if new is None or old is None:
        return f'unexpected operation "{ctx.operation}"'
    if old["spec"].get("nodeName") != node:
        return f'node "{node}" can only update pod status for pods with spec.nodeName set to itself'
    if (old["metadata"].get("labels") or {}) != (new["metadata"].get("labels") or {}):
        return f'node "{node}" cannot update labels through pod status'
    for field, words in (
        ("resourceClaimStatuses", "resource claim statues"),
        ("extendedResourceClaimStatus", "extended resource claim status"),
    ):
        if at(old, f"status.{field}") != at(new, f"status.{field}"):
            return f'node "{node}" cannot update {words}'
    return ""


def _check_eviction(ctx: Context, node: str, new: Object | None, _old: Object | None) -> str:
    name = ctx.name or ((new or {}).get("metadata") or {}).get("name", "")
    if not name:
        return "could not determine pod from request data"
    pod = ctx.objects.get("pods", name, ctx.namespace)
    if pod is None:
        raise status.not_found("", "pods", name)
    mine = pod["spec"].get("nodeName") == node
    return "" if mine else f"node {node} can only evict pods with spec.nodeName set to itself"


def _check_claim(ctx: Context, node: str, new: Object | None, old: Object | None) -> str:
    if ctx.subresource != "status":
        return "may only update PVC status"
    if new is None or old is None:
        return f'unexpected operation "{ctx.operation}"'
    if _rest_of_claim(new) == _rest_of_claim(old):
        return ""
    return f'node "{node}" is not allowed to update fields other than status.quantity and status.conditions'


def _rest_of_claim(claim: Object) -> Object:
    """Claim without the fields that a node may change."""
    unowned = ("resourceVersion", "managedFields")
    metadata = {key: value for key, value in claim["metadata"].items() if key not in unowned}
    claim_status = {k: v for k, v in (claim.get("status") or {}).items() if k not in OF_CLAIM_STATUS}
    return {**claim, "metadata": metadata, "status": claim_status}


def _check_node(ctx: Context, node: str, new: Object | None, old: Object | None) -> str:
    if ctx.name != node:
        return f'node "{node}" is not allowed to modify node "{ctx.name}"'
    if new is None:
        return ""
    labels, source = new["metadata"].get("labels") or {}, at(new, "spec.configSource")
    if old is None:
        if source is not None:
            return f'node "{node}" is not allowed to create pods with a non-nil configSource'
        bad = _forbidden_labels(labels, {})
        return f'node "{node}" is not allowed to set the following labels: {", ".join(bad)}' if bad else ""
    if source is not None and source != at(old, "spec.configSource"):
        return f'node "{node}" is not allowed to update configSource to a new non-nil configSource'
    if (at(new, "spec.taints") or []) != (at(old, "spec.taints") or []):
        return f'node "{node}" is not allowed to modify taints'
    if new["metadata"].get("ownerReferences") != old["metadata"].get("ownerReferences"):
        return f'node "{node}" is not allowed to modify ownerReferences'
    bad = _forbidden_labels(labels, old["metadata"].get("labels") or {})
    return f"is not allowed to modify labels: {', '.join(bad)}" if bad else ""


def _check_lease(ctx: Context, node: str, _new: Object | None, _old: Object | None) -> str:
    if ctx.namespace != NODE_LEASES:
        return f'can only access leases in the "{NODE_LEASES}" system namespace'
    same = "can only access node lease with the same name as the requesting node"
    return "" if ctx.name == node else same


def _check_csi_node(ctx: Context, node: str, _new: Object | None, _old: Object | None) -> str:
    same = "can only access CSINode with the same name as the requesting node"
    return "" if ctx.name == node else same


def _check_slice(_ctx: Context, node: str, new: Object | None, old: Object | None) -> str:
    if new is not None and old is not None:
        return ""
    mine = at(new or old, "spec.nodeName") == node
    verb = "create" if new is not None else "delete"
    return "" if mine else f"can only {verb} ResourceSlice with the same NodeName as the requesting node"


def _check_request(_ctx: Context, node: str, new: Object | None, old: Object | None) -> str:
    if new is None or old is not None or new["spec"].get("signerName") not in KUBELET_SIGNERS:
        return ""
    try:
        request = read_request(new["spec"].get("request", ""))
    except ValueError as error:
        return f"unable to parse csr: {error}"
    names = request.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    mine = [name.value for name in names[-1:]] == [PREFIX + node]
    return "" if mine else f"can only create a node CSR with CN={PREFIX}{node}"


async def _check_token(ctx: Context, node: str, new: Object | None) -> None:
    """Rejects a node's request for a service account token that is not bound to a pod on that node."""
    if ctx.subresource != "token" or new is None:
        return
    bound = at(new, "spec.boundObjectRef") or {}
    if (bound.get("apiVersion"), bound.get("kind")) != ("v1", "Pod") or not bound.get("name"):
        raise forbidden(ctx, new, "node requested token not bound to a pod")
    if not bound.get("uid"):
        raise forbidden(ctx, new, "node requested token with a pod binding without a uid")
    pod = ctx.objects.get("pods", bound["name"], ctx.namespace)
    if pod is None:
        raise status.not_found("", "pods", bound["name"])
    if bound["uid"] != pod["metadata"].get("uid"):
        why = f"the UID in the bound object reference ({bound['uid']}) does not match the UID in record"
        raise forbidden(ctx, new, f"{why}. The object might have been deleted and then recreated")
    if pod["spec"].get("nodeName") != node:
        raise forbidden(ctx, new, "node requested token bound to a pod scheduled on a different node")
    audiences = at(new, "spec.audiences") or [""]
    if len(audiences) > 1:
        raise forbidden(ctx, new, "node may only request 0 or 1 audiences")
    audience = audiences[0]
    if _references_audience(ctx, pod, audience):
        return
    allowed, _ = await ctx.authorize(
        "request-serviceaccounts-token-audience",
        version="v1",
        resource=audience,
        namespace=ctx.namespace,
        name=ctx.name,
    )
    if not allowed:
        why = f'audience "{audience}" not found in pod spec volume'
        unauthorized = f"{ctx.user.name} is not authorized to request tokens for this audience"
        raise forbidden(ctx, new, f"{why}, {unauthorized}")


Rule = Callable[[Context, str, Object | None, Object | None], str]


def _no_rule(_ctx: Context, _node: str, _new: Object | None, _old: Object | None) -> str:
    return ""


_RULES: dict[str, Rule] = {
    "pods": _check_pod,
    "nodes": _check_node,
    "persistentvolumeclaims": _check_claim,
    "serviceaccounts": _no_rule,
    "leases.coordination.k8s.io": _check_lease,
    "csinodes.storage.k8s.io": _check_csi_node,
    "resourceslices.resource.k8s.io": _check_slice,
    "certificatesigningrequests.certificates.k8s.io": _check_request,
}


_KUBELET_LABELS = frozenset(
    (
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    )
)
_KUBELET_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_RESTRICTED_DOMAIN = "node-restriction.kubernetes.io"


def _within(domain: str, *parents: str) -> bool:
    return any(domain == parent or domain.endswith(f".{parent}") for parent in parents)


def _forbidden_labels(new: dict[str, str], old: dict[str, str]) -> list[str]:
    """Changed labels that a node must not change."""
    changed = {key for key in new.keys() | old.keys() if new.get(key) != old.get(key)}
    bad = set()
    for label in changed:
        domain = label.partition("/")[0] if "/" in label else ""
        own = label in _KUBELET_LABELS or _within(domain, *_KUBELET_DOMAINS)
        if _within(domain, _RESTRICTED_DOMAIN) or (_within(domain, "kubernetes.io", "k8s.io") and not own):
            bad.add(label)
    return sorted(bad)


_VOLUMES = {
    "configMap": "configmaps (via configmap volumes)",
    "secret": "secrets (via secret volumes)",
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
    "azureFile": "secrets (via azureFile volumes)",
}
_PROJECTED = {
    "configMap": "configmaps (via projected volumes)",
    "secret": "secrets (via projected volumes)",
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}


def _api_references(spec: Object) -> str:
    """Kind of API objects that a pod refers to, as in the error message; "" if it refers to none."""
    if spec.get("serviceAccountName"):
        return "serviceaccounts"
    if any(True for _ in secrets_of(spec)):
        return "secrets"
    if _uses_config_maps(spec):
        return "configmaps"
    if spec.get("resourceClaims"):
        return "resourceclaims"
    for volume in spec.get("volumes") or ():
        for field, words in _VOLUMES.items():
            if volume.get(field) is not None:
                return words
        for source in at(volume, "projected.sources") or ():
            for field, words in _PROJECTED.items():
                if source.get(field) is not None:
                    return words
    return ""


def _uses_config_maps(spec: Object) -> bool:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(field) or ():
            if any(at(v, "valueFrom.configMapKeyRef") for v in container.get("env") or ()):
                return True
            if any(s.get("configMapRef") is not None for s in container.get("envFrom") or ()):
                return True
    for volume in spec.get("volumes") or ():
        if volume.get("configMap") is not None:
            return True
        if any(s.get("configMap") is not None for s in at(volume, "projected.sources") or ()):
            return True
    return False


def _references_audience(ctx: Context, pod: Object, audience: str) -> bool:
    """Whether a volume of the pod provides tokens for the audience: projected, or requested by its CSI driver."""
    for volume in pod["spec"].get("volumes") or ():
        for source in at(volume, "projected.sources") or ():
            token = source.get("serviceAccountToken")
            if token is not None and token.get("audience", "") == audience:
                return True
        driver = (
            ctx.objects.get("csidrivers", name, group="storage.k8s.io")
            if (name := _driver(ctx, pod, volume))
            else None
        )
        requests = at(driver or {}, "spec.tokenRequests") or ()
        if any(request.get("audience", "") == audience for request in requests):
            return True
    return False


def _driver(ctx: Context, pod: Object, volume: Object) -> str:
    """CSI driver of a volume, directly or through a claim; "" if it has none."""
    if volume.get("csi") is not None:
        return str(volume["csi"].get("driver", ""))
    claim = at(volume, "persistentVolumeClaim.claimName")
    if volume.get("ephemeral") is not None:
        claim = f"{pod['metadata']['name']}-{volume['name']}"
    if not claim:
        return ""
    pvc = ctx.objects.get("persistentvolumeclaims", claim, pod["metadata"].get("namespace", ""))
    name = at(pvc or {}, "spec.volumeName")
    pv = ctx.objects.get("persistentvolumes", name) if name else None
    return str(at(pv or {}, "spec.csi.driver") or "")
