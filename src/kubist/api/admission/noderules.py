"""Restrictions for nodes: labels that a node may change, API references of its pods, audiences of its tokens."""

from __future__ import annotations

from kubist.api.admission.plugins.serviceaccount import secrets_of
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import at
from kubist.model.meta.object import Object

KUBELET_LABELS = frozenset(
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
KUBELET_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
RESTRICTED_DOMAIN = "node-restriction.kubernetes.io"


def _within(domain: str, *parents: str) -> bool:
    return any(domain == parent or domain.endswith(f".{parent}") for parent in parents)


def forbidden_labels(new: dict[str, str], old: dict[str, str]) -> list[str]:
    """Changed labels that a node must not change."""
    changed = {key for key in new.keys() | old.keys() if new.get(key) != old.get(key)}
    bad = set()
    for label in changed:
        domain = label.partition("/")[0] if "/" in label else ""
        own = label in KUBELET_LABELS or _within(domain, *KUBELET_DOMAINS)
        if _within(domain, RESTRICTED_DOMAIN) or (_within(domain, "kubernetes.io", "k8s.io") and not own):
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


def api_references(spec: Object) -> str:
    """Kind of API object that a pod refers to, as shown in the error message; "" if it refers to none."""
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


def references_audience(ctx: Context, pod: Object, audience: str) -> bool:
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
    found = ctx.objects.get("persistentvolumeclaims", claim, pod["metadata"].get("namespace", ""))
    name = at(found or {}, "spec.volumeName")
    held = ctx.objects.get("persistentvolumes", name) if name else None
    return str(at(held or {}, "spec.csi.driver") or "")
