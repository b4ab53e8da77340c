"""StatefulSet controller: pods with stable names and claims, created, replaced and deleted in order."""

from __future__ import annotations

import copy

from kubist.control.values import pod_ready
from kubist.control.workloads import pods as of_pods
from kubist.control.workloads import revisions
from kubist.control.workloads.pods import PodOwnerLoop
from kubist.meta.object import Object
from kubist.meta.status import APIError

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"


class StatefulSets(PodOwnerLoop):
    name = "statefulset"
    resource = "statefulsets"

    async def reconcile(self, key: tuple[str, str]) -> None:
        owner = self.find(key)
        if owner is None:
            return
        update, all_revisions = await revisions.current(self.client, owner)
        names = {revision["metadata"]["name"]: revision for revision in all_revisions}
        current = names.get(owner["status"].get("currentRevision", ""), update)
        pods = {ordinal(pod): pod for pod in await of_pods.claim(self.client, "pods", owner)}
        if "deletionTimestamp" not in owner["metadata"]:
            await self._step(owner, pods, update, current)
        await self._status(key, owner, list(pods.values()), update, current)
        used = {pod["metadata"].get("labels", {}).get(revisions.HASH_LABEL, "") for pod in pods.values()}
        used |= {update["metadata"]["name"], current["metadata"]["name"]}
        await revisions.delete_unused(
            self.client, all_revisions, used, owner["spec"].get("revisionHistoryLimit", 10)
        )

    async def _step(self, owner: Object, pods: dict[int, Object], update: Object, current: Object) -> None:
        """Does all steps that are possible now. Unless the set is Parallel, each pod must be available before
        the next step."""
        spec = owner["spec"]
        start = (spec.get("ordinals") or {}).get("start", 0)
        wanted = range(start, start + spec.get("replicas", 1))
        parallel = spec.get("podManagementPolicy") == "Parallel"
        least = spec.get("minReadySeconds", 0)
        strategy = spec.get("updateStrategy") or {}
        partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
        for index in wanted:
            pod = pods.get(index)
            if pod is not None and pod["status"].get("phase") in ("Failed", "Succeeded"):
                await of_pods.delete(self.client, pod)
                pod = None if parallel else pod
            if pod is None:
                revision = (
                    update if index >= start + partition or strategy.get("type") == "OnDelete" else current
                )
                await self._create(owner, index, revision)
                if not parallel:
                    return
            elif not parallel and (
                "deletionTimestamp" in pod["metadata"]
                or of_pods.available_in(pod, least, self.clock.now()) != 0
            ):
                return
        for index in sorted((index for index in pods if index not in wanted), reverse=True):
            if "deletionTimestamp" not in pods[index]["metadata"]:
                await of_pods.delete(self.client, pods[index])
            if not parallel:
                return
        if strategy.get("type") == "OnDelete":
            return
        for index in sorted(wanted, reverse=True):
            pod = pods.get(index)
            if index < start + partition or pod is None:
                continue
            if revision_of(pod) != update["metadata"]["name"]:
                if "deletionTimestamp" not in pod["metadata"]:
                    await of_pods.delete(self.client, pod)
                return
            if not pod_ready(pod):
                return

    async def _create(self, owner: Object, index: int, revision: Object) -> None:
        metadata = owner["metadata"]
        name = f"{metadata['name']}-{index}"
        template = copy.deepcopy(revision["data"]["spec"]["template"])
        pod = of_pods.from_template(template, owner, name)
        pod["metadata"].setdefault("labels", {}).update(
            {POD_NAME: name, POD_INDEX: str(index), revisions.HASH_LABEL: revision["metadata"]["name"]}
        )
        pod["spec"].setdefault("hostname", name)
        if owner["spec"].get("serviceName"):
            pod["spec"].setdefault("subdomain", owner["spec"]["serviceName"])
        await self._claims(owner, pod, name)
        try:
            await self.client.create("pods", pod, metadata["namespace"])
        except APIError as error:
            if error.reason != "AlreadyExists":
                raise

    async def _claims(self, owner: Object, pod: Object, name: str) -> None:
        """Creates the claims of a pod and adds them as volumes. Claims are not deleted with the pod."""
        namespace = owner["metadata"]["namespace"]
        for template in owner["spec"].get("volumeClaimTemplates") or ():
            kept = template["metadata"]
            claim = f"{kept['name']}-{name}"
            volumes = [v for v in pod["spec"].get("volumes") or () if v["name"] != kept["name"]]
            volumes.append({"name": kept["name"], "persistentVolumeClaim": {"claimName": claim}})
            pod["spec"]["volumes"] = volumes
            if self.client.get("persistentvolumeclaims", claim, namespace) is None:
                labels = {
                    **(kept.get("labels") or {}),
                    **(owner["spec"]["selector"].get("matchLabels") or {}),
                }
                new = {"metadata": {"name": claim, "labels": labels}, "spec": copy.deepcopy(template["spec"])}
                await self.client.create("persistentvolumeclaims", new, namespace)

    async def _status(
        self, key: tuple[str, str], owner: Object, claimed: list[Object], update: Object, current: Object
    ) -> None:
        pods = [pod for pod in claimed if "deletionTimestamp" not in pod["metadata"]]
        newest, before = update["metadata"]["name"], current["metadata"]["name"]
        least = owner["spec"].get("minReadySeconds", 0)
        waits = [of_pods.available_in(pod, least, self.clock.now()) for pod in pods]
        if later := [wait for wait in waits if wait]:
            self.queue.add_after(key, min(later) + 0.01)
        updated = sum(revision_of(pod) == newest for pod in pods)
        ready = sum(pod_ready(pod) for pod in pods)
        wanted = owner["spec"].get("replicas", 1)
        partition = ((owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}).get(
            "partition", 0
        )
        if updated == wanted == len(pods) == ready and not partition:
            before = newest
        status = {
            "observedGeneration": owner["metadata"].get("generation"),
            "replicas": len(pods),
            "readyReplicas": ready or None,
            "availableReplicas": sum(wait == 0 for wait in waits),
            "currentReplicas": sum(revision_of(pod) == before for pod in pods) or None,
            "updatedReplicas": updated or None,
            "currentRevision": before,
            "updateRevision": newest,
            "collisionCount": owner["status"].get("collisionCount", 0),
            "conditions": owner["status"].get("conditions"),
        }
        await self.write_status(owner, status)


def ordinal(pod: Object) -> int:
    text = pod["metadata"]["name"].rpartition("-")[2]
    return int(text) if text.isdigit() else -1


def revision_of(pod: Object) -> str:
    label: str = (pod["metadata"].get("labels") or {}).get(revisions.HASH_LABEL, "")
    return label
