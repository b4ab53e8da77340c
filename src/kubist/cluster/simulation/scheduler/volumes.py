"""Volumes of pods: node affinity of bound volumes, and claims that wait for their first consumer.

For a claim whose StorageClass waits, the scheduler chooses the node first. It then assigns a volume that exists, or
names the node for the provisioner, and binds the pod when the claim is bound.
"""

from __future__ import annotations

from typing import NamedTuple

from kubist.api.object_client import ObjectClient
from kubist.cluster.control.node_fit import selector_rule
from kubist.cluster.simulation.scheduler.pod_info import PodInfo
from kubist.cluster.simulation.scheduler.refusal import Refusal
from kubist.cluster.simulation.scheduler.snapshot import NodeInfo, Snapshot
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import parse_quantity
from kubist.model.meta.selectors import label_selector

BINDING, ZONE, RESTRICTIONS = "VolumeBinding", "VolumeZone", "VolumeRestrictions"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = ("", "kubernetes.io/no-provisioner")
STORAGE = "storage.k8s.io"
ZONE_LABELS = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
NODE_CONFLICT = Refusal(BINDING, ("node(s) didn't match PersistentVolume's node affinity",), resolvable=False)
BIND_CONFLICT = Refusal(
    BINDING, ("node(s) didn't find available persistent volumes to bind",), resolvable=False
)
NO_VOLUME = Refusal(
    BINDING, ("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",), resolvable=False
)
NO_ZONE = Refusal(ZONE, ("node(s) had no available volume zone",), resolvable=False)
IN_USE = Refusal(
    RESTRICTIONS,
    (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
        "another pod",
    ),
)


class Binding(NamedTuple):
    """Claim to bind before its pod: to a volume, or else by provisioning for the node."""

    claim: Object
    volume: Object | None


class Volumes:
    """Reads claims, volumes and StorageClasses."""

    def __init__(self, client: ObjectClient) -> None:
        self._client = client

    def of(self, pod: PodInfo, snapshot: Snapshot) -> PodVolumes:
        pod_volumes = PodVolumes(self)
        for name, is_ephemeral in pod.claims:
            claim = self._client.get("persistentvolumeclaims", name, pod.namespace)
            pod_volumes.problem = _problem(pod, name, claim, is_ephemeral)
            if pod_volumes.problem or claim is None:
                return pod_volumes
            if "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ()):
                users = snapshot.claims.get((pod.namespace, name), set())
                pod_volumes.in_use = pod_volumes.in_use or bool(users - {pod.key})
            if is_bound(claim):
                pod_volumes.bound.append(self._client.get("persistentvolumes", claim["spec"]["volumeName"]))
            elif self.waits(claim):
                pod_volumes.waiting.append(claim)
            else:
                pod_volumes.problem = "pod has unbound immediate PersistentVolumeClaims"
                return pod_volumes
        pod_volumes.waiting.sort(key=_size)
        return pod_volumes

    def storage_class(self, claim: Object) -> Object | None:
        name = claim["spec"].get("storageClassName")
        return self._client.get("storageclasses", name, group=STORAGE) if name else None

    def waits(self, claim: Object) -> bool:
        """Whether a claim is bound only when a pod that uses it is scheduled."""
        obj = self.storage_class(claim) or {}
        return obj.get("volumeBindingMode") == "WaitForFirstConsumer" and not claim["spec"].get("volumeName")

    def available(self) -> list[Object]:
        """Volumes without a claim, the smallest first."""
        free = [
            volume
            for volume in self._client.list("persistentvolumes")
            if not volume["spec"].get("claimRef") and "deletionTimestamp" not in volume["metadata"]
        ]
        return sorted(free, key=lambda volume: (_capacity(volume), volume["metadata"]["name"]))


class PodVolumes:
    """Claims of one pod."""

    def __init__(self, volumes: Volumes) -> None:
        self.problem = ""
        """Reason why the pod cannot run on any node now."""
        self.bound: list[Object | None] = []
        self.waiting: list[Object] = []
        self.in_use = False
        self._volumes = volumes
        self._free: list[Object] | None = None

    def check(self, info: NodeInfo) -> Refusal | None:
        if self.in_use:
            return IN_USE
        for volume in self.bound:
            if volume is None:
                return NO_VOLUME
            if not reaches(volume, info):
                return NODE_CONFLICT
            if not _in_zone(volume, info):
                return NO_ZONE
        if self.waiting and self.bindings(info) is None:
            return BIND_CONFLICT
        return None

    def bindings(self, info: NodeInfo) -> list[Binding] | None:
        """Bindings of the waiting claims for a node. None if a claim can get no volume there."""
        if self._free is None:
            self._free = self._volumes.available()
        made: list[Binding] = []
        taken: set[str] = set()
        for claim in self.waiting:
            selected = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
            if selected:
                if selected != info.name:
                    return None
                made.append(Binding(claim, None))
                continue
            volume = next(
                (v for v in self._free if v["metadata"]["name"] not in taken and suits(v, claim, info)), None
            )
            if volume is not None:
                taken.add(volume["metadata"]["name"])
            elif not _provisions(self._volumes.storage_class(claim) or {}, info):
                return None
            made.append(Binding(claim, volume))
        return made


def is_bound(claim: Object) -> bool:
    status = claim.get("status") or {}
    return bool(claim["spec"].get("volumeName")) and status.get("phase") == "Bound"


def _problem(pod: PodInfo, name: str, claim: Object | None, is_ephemeral: bool) -> str:
    if claim is None:
        if is_ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return f'persistentvolumeclaim "{name}" not found'
    if (claim.get("status") or {}).get("phase") == "Lost":
        volume = claim["spec"].get("volumeName", "")
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
    if "deletionTimestamp" in claim["metadata"]:
        return f'persistentvolumeclaim "{name}" is being deleted'
    owners = claim["metadata"].get("ownerReferences") or ()
    if is_ephemeral and not any(owner.get("uid") == pod.uid for owner in owners):
        where = f"{pod.namespace}/{name} was not created for pod {'/'.join(pod.key)}"
        return f"PVC {where} (pod is not owner)"
    return ""


def reaches(volume: Object, info: NodeInfo) -> bool:
    """Whether the node affinity of a volume allows a node."""
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    return required is None or selector_rule(required)(info.name, info.labels)


def _in_zone(volume: Object, info: NodeInfo) -> bool:
    """Whether the zone labels of a volume allow a node. Nodes without zone labels have no zones."""
    labels = volume["metadata"].get("labels") or {}
    if not any(key in info.labels for key in ZONE_LABELS):
        return True
    return all(info.labels.get(key) in labels[key].split("__") for key in ZONE_LABELS if key in labels)


def suits(volume: Object, claim: Object, info: NodeInfo) -> bool:
    """Whether a volume without a claim can serve this claim on a node."""
    spec, claim_spec = volume["spec"], claim["spec"]
    selector = claim_spec.get("selector")
    return (
        spec.get("storageClassName", "") == claim_spec.get("storageClassName", "")
        and spec.get("volumeMode", "Filesystem") == claim_spec.get("volumeMode", "Filesystem")
        and set(claim_spec.get("accessModes") or ()) <= set(spec.get("accessModes") or ())
        and _capacity(volume) >= _size(claim)
        and (selector is None or label_selector(selector).matches(volume["metadata"].get("labels")))
        and reaches(volume, info)
    )


def _provisions(storage_class: Object, info: NodeInfo) -> bool:
    """Whether a StorageClass can make a volume for a node."""
    if storage_class.get("provisioner", "") in NO_PROVISIONER:
        return False
    terms = storage_class.get("allowedTopologies") or ()
    return not terms or any(
        all(
            info.labels.get(each["key"]) in each["values"] for each in term.get("matchLabelExpressions") or ()
        )
        for term in terms
    )


def _size(claim: Object) -> int:
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    return parse_quantity(requests.get("storage", "0")).value()


def _capacity(volume: Object) -> int:
    return parse_quantity((volume["spec"].get("capacity") or {}).get("storage", "0")).value()
