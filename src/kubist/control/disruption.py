"""Disruption controller: status of PodDisruptionBudgets (healthy pods and allowed disruptions)."""

from __future__ import annotations

from kubist import clock
from kubist.control.loop import Loop, controller_of, entry_of
from kubist.control.names import NamesByNamespace
from kubist.control.values import pod_ready, scaled
from kubist.meta import times
from kubist.meta.conditions import set_condition
from kubist.meta.object import Object
from kubist.meta.selectors import label_selector
from kubist.meta.times import parse_time
from kubist.objectclient import ObjectClient
from kubist.storage.cache import Change

GROUP = "policy"
SCALED = {"replicationcontrollers": "", "replicasets": "apps", "deployments": "apps", "statefulsets": "apps"}
DELETION_TIMEOUT = 120
"""Seconds after which an evicted pod that was not deleted counts as healthy again."""


class Disruption(Loop):
    name = "disruption"

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        self._budgets = NamesByNamespace()

    def follow(self) -> None:
        self.watch("poddisruptionbudgets", self._budget_changed, group=GROUP)
        self.watch("pods", self._content_changed)
        for resource, group in SCALED.items():
            self.watch(resource, self._content_changed, group=group)

    def _budget_changed(self, change: Change) -> None:
        self._budgets.apply(change)
        if change.new is not None:
            self.enqueue(change)

    def _content_changed(self, change: Change) -> None:
        for key in self._budgets.keys(entry_of(change).namespace):
            self.enqueue_soon(key, self.client.collection("pods"))

    async def reconcile(self, key: tuple[str, str]) -> None:
        namespace, name = key
        budget = self.client.get("poddisruptionbudgets", name, namespace, group=GROUP)
        if budget is None:
            return
        selector = budget["spec"].get("selector")
        matches = label_selector(selector).matches if selector is not None else None
        pods = [
            entry.object()
            for entry in self.client.labelled("pods", namespace)
            if matches is not None and matches(entry.labels)
        ]
        condition: Object = {"type": "DisruptionAllowed"}
        try:
            expected, desired = self._expected(budget["spec"], pods, namespace)
        except LookupError as error:
            wanted: Object = {**budget["status"], "disruptionsAllowed": 0}
            condition |= {"status": "False", "reason": "SyncFailed", "message": str(error)}
        else:
            disrupted = self._disrupted(budget, pods, key)
            healthy = sum(
                1
                for pod in pods
                if "deletionTimestamp" not in pod["metadata"]
                and pod["metadata"]["name"] not in disrupted
                and pod_ready(pod)
            )
            allowed = max(healthy - desired, 0) if expected > 0 else 0
            wanted = {
                "currentHealthy": healthy,
                "desiredHealthy": desired,
                "disruptionsAllowed": allowed,
                "expectedPods": expected,
                "conditions": budget["status"].get("conditions") or [],
            }
            if disrupted:
                wanted["disruptedPods"] = disrupted
            reason = "SufficientPods" if allowed > 0 else "InsufficientPods"
            condition |= {"status": "True" if allowed > 0 else "False", "reason": reason, "message": ""}
        generation = budget["metadata"].get("generation", 0)
        wanted["observedGeneration"] = condition["observedGeneration"] = generation
        wanted["conditions"] = [dict(held) for held in wanted.get("conditions") or ()]
        set_condition(wanted["conditions"], condition, times.now())
        version = budget["metadata"]["resourceVersion"]

        def edit(held: Object) -> Object | None:
            if held["metadata"]["resourceVersion"] != version:
                self.queue.add(key)
                return None
            held["status"] = wanted
            return held

        await self.client.update(
            "poddisruptionbudgets", name, namespace, edit, group=GROUP, subresource="status"
        )

    def _expected(self, spec: Object, pods: list[Object], namespace: str) -> tuple[int, int]:
        """Expected number of pods, and desired number of healthy pods."""
        if spec.get("maxUnavailable") is not None:
            expected = self._scale(pods, namespace)
            return expected, max(expected - scaled(spec["maxUnavailable"], expected, up=True), 0)
        least = spec.get("minAvailable")
        if isinstance(least, str):
            expected = self._scale(pods, namespace)
            return expected, scaled(least, expected, up=True)
        return len(pods), least or 0

    def _scale(self, pods: list[Object], namespace: str) -> int:
        """Sum of the replicas of the pods' controllers."""
        scales: dict[str, int] = {}
        for pod in pods:
            reference = controller_of(pod)
            if reference is None or reference["uid"] in scales:
                continue
            owner = self._owner(reference, namespace)
            above = controller_of(owner) if owner is not None else None
            if owner is not None and above is not None and above.get("kind") == "Deployment":
                owner = self._owner(above, namespace) or owner
            if owner is None:
                raise LookupError(f'found no controllers for pod "{pod["metadata"]["name"]}"')
            scales[owner["metadata"]["uid"]] = (owner.get("spec") or {}).get("replicas", 0)
        return sum(scales.values())

    def _owner(self, reference: Object, namespace: str) -> Object | None:
        group, _, version = reference.get("apiVersion", "").rpartition("/")
        kind = self.client.find_kind(group, version, reference.get("kind", ""))
        if kind is None or "scale" not in kind.subresources:
            return None
        owner = self.client.get(kind.resource, reference["name"], namespace, group=kind.group)
        return owner if owner is not None and owner["metadata"]["uid"] == reference["uid"] else None

    def _disrupted(self, budget: Object, pods: list[Object], key: tuple[str, str]) -> Object:
        """Evicted pods that are not yet being deleted, with their eviction times."""
        held = budget["status"].get("disruptedPods") or {}
        left = {}
        for pod in pods:
            name = pod["metadata"]["name"]
            if name not in held or "deletionTimestamp" in pod["metadata"]:
                continue
            remaining = parse_time(held[name]) + DELETION_TIMEOUT - clock.now()
            if remaining > 0:
                left[name] = held[name]
                self.queue.add_after(key, remaining)
        return left
