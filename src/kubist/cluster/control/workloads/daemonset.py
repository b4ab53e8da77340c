"""DaemonSet controller: one pod on every suitable node."""

from __future__ import annotations

import asyncio

from kubist.api.object_client import ObjectClient
from kubist.cluster.control.loop import entry_of
from kubist.cluster.control.workloads import daemonset_plan, revisions
from kubist.cluster.control.workloads import pods as of_pods
from kubist.cluster.control.workloads.pods import PodOwnerLoop
from kubist.cluster.control.workloads.revisions import HASH_LABEL, History
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.storage.cache.cache import Change

BURST = 250
"""Maximum number of pods created or deleted in one pass."""
FIRST_DELAY = 1.0
LONGEST_DELAY = 900.0
"""Seconds between deletions of failed pods of one set on one node. The delay doubles."""


class DaemonSets(PodOwnerLoop):
    name = "daemonset"
    component = "daemonset-controller"
    resource = "daemonsets"

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        self._failures: dict[tuple[str, str], tuple[int, dict[str, tuple[float, float]]]] = {}
        """By set: its generation, and by node the time of the last deletion of a failed pod and the delay after it."""

    def follow(self) -> None:
        super().follow()
        self.watch("nodes", self._node_changed)

    def _manager_changed(self, change: Change) -> None:
        if change.new is None:
            entry = entry_of(change)
            self._failures.pop((entry.namespace, entry.name), None)
        super()._manager_changed(change)

    def _node_changed(self, change: Change) -> None:
        old, new = change.old, change.new
        sets = self.client.collection(self.resource, group=self.group).entries
        if not sets:
            return
        if old is not None and new is not None and old.labels == new.labels:
            before, after = old.object(), self.client.parsed(new)
            if before["spec"] == after["spec"]:
                return
        nodes = self.client.collection("nodes")
        for entry in sets.values():
            self.enqueue_soon((entry.namespace, entry.name), nodes)

    async def reconcile(self, key: tuple[str, str]) -> None:
        owner = self.find(key)
        if owner is None:
            return
        if not owner["spec"].get("selector"):
            text = "This daemon set is selecting all pods. A non-empty selector is required."
            self.events.emit(owner, "Warning", "SelectingAll", text)
            return
        if "deletionTimestamp" in owner["metadata"]:
            return
        fit = daemonset_plan.fits(owner)
        nodes = {
            entry.name: fit(self.client.parsed(entry))
            for entry in self.client.collection("nodes").entries.values()
        }
        history = await revisions.history(self.client, owner, HASH_LABEL)
        digest = history.present["metadata"]["labels"][HASH_LABEL]
        claimed = await self.claim(owner)
        pods = daemonset_plan.by_node(claimed)
        failure: APIError | None = None
        now = self.clock.now()
        try:
            await self._step(key, owner, nodes, pods, digest)
            await self._clean_up(owner, history, claimed)
        except APIError as error:
            failure = error
        status = daemonset_plan.daemon_status(owner, nodes, pods, digest, now)
        status["collisionCount"] = history.collisions or status["collisionCount"]
        await self.write_status(owner, status)
        if failure is not None:
            raise failure
        self.check_later(key, claimed, owner["spec"].get("minReadySeconds", 0), now)

    async def _step(
        self,
        key: tuple[str, str],
        owner: Object,
        nodes: dict[str, daemonset_plan.Fit],
        pods: daemonset_plan.PodsByNode,
        digest: str,
    ) -> None:
        """Puts pods on nodes. An update continues only when no node needs a pod created or deleted."""
        now = self.clock.now()
        plan = daemonset_plan.plan(
            owner, nodes, pods, digest, lambda node: self._may_replace(key, owner, node), now
        )
        if not plan.create and not plan.delete and daemonset_plan.is_rolling(owner):
            plan = daemonset_plan.plan_update(owner, nodes, pods, digest, now)
        for event in plan.events:
            self.events.emit(owner, *event)
        generation = (owner["metadata"].get("annotations") or {}).get(daemonset_plan.GENERATION, "")
        template = owner["spec"]["template"]

        async def create(number: int) -> None:
            made = daemonset_plan.new_pod(template, plan.create[number], digest, generation)
            await self.create_pod(owner, of_pods.from_template(made, owner))

        await of_pods.slow_start(min(len(plan.create), BURST), create)
        await asyncio.gather(*(self.delete_pod(owner, pod) for pod in plan.delete[:BURST]))

    def _may_replace(self, key: tuple[str, str], owner: Object, node: str) -> bool:
        """Whether a failed pod may be deleted now. Otherwise the set is queued for the end of the delay."""
        generation = owner["metadata"].get("generation", 0)
        if self._failures.get(key, (-1, {}))[0] != generation:
            self._failures[key] = (generation, {})
        failures = self._failures[key][1]
        now = self.clock.now()
        last, delay = failures.get(node, (0.0, 0.0))
        if now - last < delay:
            self.queue.add_after(key, last + delay - now)
            return False
        if now - last > 2 * LONGEST_DELAY:
            delay = 0.0
        failures[node] = (now, min(delay * 2, LONGEST_DELAY) or FIRST_DELAY)
        return True

    async def _clean_up(self, owner: Object, history: History, pods: list[Object]) -> None:
        """Deletes the oldest revisions above revisionHistoryLimit that no pod has."""
        old = [revision for revision in history.all if revision is not history.present]
        surplus = len(old) - owner["spec"].get("revisionHistoryLimit", 10)
        live = {(pod["metadata"].get("labels") or {}).get(HASH_LABEL) for pod in pods}
        for revision in old:
            if surplus <= 0:
                return
            if revision["metadata"].get("labels", {}).get(HASH_LABEL) not in live:
                await of_pods.delete(self.client, revision, revisions.RESOURCE, group="apps")
                surplus -= 1
