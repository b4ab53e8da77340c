"""DaemonSet controller: one pod on every suitable node."""

from __future__ import annotations

import copy

from kubist.control.tolerations import tolerated
from kubist.control.values import pod_active, pod_ready, scaled
from kubist.control.workloads import pods as of_pods
from kubist.control.workloads import revisions
from kubist.control.workloads.pods import PodOwnerLoop
from kubist.meta.object import Object
from kubist.storage.cache import Change

TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)


class DaemonSets(PodOwnerLoop):
    name = "daemonset"
    resource = "daemonsets"

    def follow(self) -> None:
        super().follow()
        self.watch("nodes", self._node_changed)

    def _node_changed(self, change: Change) -> None:
        old, new = change.old, change.new
        if old is not None and new is not None:
            before, after = old.object(), new.object()
            if before["spec"] == after["spec"] and old.labels == new.labels:
                return
        for entry in self.client.collection("daemonsets", group="apps").entries.values():
            self.queue.add((entry.namespace, entry.name))

    async def reconcile(self, key: tuple[str, str]) -> None:
        owner = self.find(key)
        if owner is None:
            return
        revision, all_revisions = await revisions.current(self.client, owner)
        nodes = {node["metadata"]["name"] for node in self.client.list("nodes") if suits(owner, node)}
        pods = await of_pods.claim(self.client, "pods", owner)
        if "deletionTimestamp" not in owner["metadata"]:
            await self._step(owner, pods, nodes, revision)
        await self._status(key, owner, [pod for pod in pods if pod_active(pod)], nodes, revision)
        used = {revision["metadata"]["name"]}
        await revisions.delete_unused(
            self.client, all_revisions, used, owner["spec"].get("revisionHistoryLimit", 10)
        )

    async def _step(self, owner: Object, pods: list[Object], nodes: set[str], revision: Object) -> None:
        digest = revision["metadata"]["labels"][revisions.HASH_LABEL]
        covered: set[str] = set()
        stale = []
        unavailable = 0
        for pod in pods:
            node = target(pod)
            if "deletionTimestamp" in pod["metadata"]:
                covered.add(node)
                unavailable += 1
            elif node not in nodes or node in covered or not pod_active(pod):
                await of_pods.delete(self.client, pod)
            else:
                covered.add(node)
                unavailable += not pod_ready(pod)
                if (pod["metadata"].get("labels") or {}).get(revisions.HASH_LABEL) != digest:
                    stale.append(pod)
        for node in sorted(nodes - covered):
            await self._create(owner, node, digest)
        strategy = owner["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return
        bound = (strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1)
        allowed = max(scaled(bound, len(nodes), up=True), 1) - unavailable
        for pod in stale[: max(allowed, 0)]:
            await of_pods.delete(self.client, pod)

    async def _create(self, owner: Object, node: str, digest: str) -> None:
        pod = of_pods.from_template(copy.deepcopy(owner["spec"]["template"]), owner)
        labels = pod["metadata"].setdefault("labels", {})
        labels[revisions.HASH_LABEL] = digest
        labels["pod-template-generation"] = str(owner["metadata"].get("generation", 1))
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        affinity = pod["spec"].setdefault("affinity", {})
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": required}
        held = pod["spec"].setdefault("tolerations", [])
        held += [{"key": key, "operator": "Exists", "effect": effect} for key, effect in TOLERATED]
        pod["spec"]["nodeName"] = node
        await self.client.create("pods", pod, owner["metadata"]["namespace"])

    async def _status(
        self, key: tuple[str, str], owner: Object, pods: list[Object], nodes: set[str], revision: Object
    ) -> None:
        digest = revision["metadata"]["labels"][revisions.HASH_LABEL]
        right = [pod for pod in pods if target(pod) in nodes]
        least = owner["spec"].get("minReadySeconds", 0)
        waits = [of_pods.available_in(pod, least, self.clock.now()) for pod in right]
        if later := [wait for wait in waits if wait]:
            self.queue.add_after(key, min(later) + 0.01)
        available = sum(wait == 0 for wait in waits)
        updated = [
            p for p in right if (p["metadata"].get("labels") or {}).get(revisions.HASH_LABEL) == digest
        ]
        status = {
            "observedGeneration": owner["metadata"].get("generation"),
            "currentNumberScheduled": len({target(pod) for pod in right}),
            "numberMisscheduled": len(pods) - len(right),
            "desiredNumberScheduled": len(nodes),
            "numberReady": sum(pod_ready(pod) for pod in right),
            "updatedNumberScheduled": len(updated) or None,
            "numberAvailable": available or None,
            "numberUnavailable": max(len(nodes) - available, 0) or None,
            "conditions": owner["status"].get("conditions"),
        }
        await self.write_status(owner, status)


def target(pod: Object) -> str:
    node: str = pod["spec"].get("nodeName", "")
    return node


def suits(owner: Object, node: Object) -> bool:
    spec = owner["spec"]["template"]["spec"]
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    held = [
        *(spec.get("tolerations") or ()),
        *({"key": k, "operator": "Exists", "effect": e} for k, e in TOLERATED),
    ]
    return all(tolerated(taint, held) for taint in node["spec"].get("taints") or ())
