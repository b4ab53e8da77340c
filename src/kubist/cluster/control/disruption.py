"""Disruption controller: status of PodDisruptionBudgets (healthy pods and allowed disruptions)."""

from __future__ import annotations

from typing import NamedTuple

from kubist.api.object_client import ObjectClient
from kubist.api.resources.strategy import Scale
from kubist.cluster.control.indexes import NamesByNamespace
from kubist.cluster.control.loop import Loop, controller_of, entry_of
from kubist.cluster.control.values import pod_ready, scaled
from kubist.model.meta.conditions import find, set_condition
from kubist.model.meta.object import Object
from kubist.model.meta.selectors import LabelSelector, go_label_selector, label_selector
from kubist.model.meta.times import parse_time
from kubist.storage.cache.cache import Change, Entry

GROUP = "policy"
SCALED = {"replicationcontrollers": "", "replicasets": "apps", "deployments": "apps", "statefulsets": "apps"}
DELETION_TIMEOUT = 120
"""Seconds after which an evicted pod that was not deleted counts as healthy again, and loses DisruptionTarget."""
TARGETED = b'"DisruptionTarget"'
FINISHED = ("Succeeded", "Failed")
UNMANAGED = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of "
    "the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please "
    'set ".spec.minAvailable" field of the PDB to an integer value.'
)

Key = tuple[str, str] | tuple[str, str, str]
"""Namespace and name of a budget; or namespace, name and UID of an evicted pod."""


class Expected(NamedTuple):
    """Expected number of pods, desired number of healthy ones, and whether some pods have no controller."""

    pods: int
    healthy: int
    unmanaged: bool = False


class Disruption(Loop):
    name = "disruption"
    component = "controllermanager"

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        self._budgets = NamesByNamespace()
        self._selectors: dict[tuple[str, str], LabelSelector | None] = {}
        """Selector of every budget. None matches no pod."""

    def follow(self) -> None:
        self.watch("poddisruptionbudgets", self._budget_changed, group=GROUP)
        self.watch("pods", self._pod_changed)
        for resource, group in SCALED.items():
            self.watch(resource, self._scale_changed, group=group)

    def _budget_changed(self, change: Change) -> None:
        self._budgets.apply(change)
        entry = entry_of(change)
        if change.new is None:
            self._selectors.pop((entry.namespace, entry.name), None)
            return
        selector = self.client.parsed(entry)["spec"].get("selector")
        self._selectors[entry.namespace, entry.name] = (
            label_selector(selector) if selector is not None else None
        )
        self.enqueue(change)

    def _pod_changed(self, change: Change) -> None:
        entry = entry_of(change)
        if change.new is not None and TARGETED in change.new.tail:
            pod = self.client.parsed(change.new)
            self.queue.add((entry.namespace, entry.name, pod["metadata"]["uid"]))
        for key in self._budgets.keys(entry.namespace):
            if any(self._selects(key, version) for version in (change.old, change.new)):
                self.enqueue_soon(key, self.client.collection("pods"))

    def _selects(self, key: tuple[str, str], entry: Entry | None) -> bool:
        selector = self._selectors.get(key)
        return entry is not None and selector is not None and selector.matches(entry.labels)

    def _scale_changed(self, change: Change) -> None:
        for key in self._budgets.keys(entry_of(change).namespace):
            self.enqueue_soon(key, self.client.collection("pods"))

    async def reconcile(self, key: Key) -> None:
        if len(key) == 3:
            await self._clear_target(key)
            return
        namespace, name = key
        budget = self.client.get("poddisruptionbudgets", name, namespace, group=GROUP)
        if budget is None:
            return
        pods = [
            self.client.parsed(entry)
            for entry in self.client.labelled("pods", namespace)
            if self._selects(key, entry)
        ]
        if not pods:
            self.events.emit(budget, "Normal", "NoPods", "No matching pods found")
        self._warn_of_several(key, pods)
        try:
            expected = self._expected(budget["spec"], pods, namespace)
        except LookupError as error:
            text = f"Failed to calculate the number of expected pods: {error}"
            self.events.emit(budget, "Warning", "CalculateExpectedPodCountFailed", text)
            await self._write(key, budget, failed_status(budget, str(error), self.stamp()))
            return
        if expected.unmanaged:
            self.events.emit(
                budget,
                "Warning",
                "UnmanagedPods",
                UNMANAGED.format(go_label_selector(budget["spec"].get("selector") or {})),
            )
        disrupted = self._disrupted(budget, pods, key)
        await self._write(key, budget, budget_status(budget, pods, expected, disrupted, self.stamp()))

    async def _write(self, key: tuple[str, str], budget: Object, status: Object) -> None:
        version = budget["metadata"]["resourceVersion"]

        def edit(current: Object) -> Object | None:
            if current["metadata"]["resourceVersion"] != version:
                self.queue.add(key)
                return None
            current["status"] = status
            return current

        if status != budget.get("status"):
            await self.client.update(
                "poddisruptionbudgets", key[1], key[0], edit, group=GROUP, subresource="status"
            )

    def _warn_of_several(self, key: tuple[str, str], pods: list[Object]) -> None:
        """Records an Event for pods that several budgets select. Evictions of such pods fail."""
        others = [
            (other[1], selector)
            for other in self._budgets.keys(key[0])
            if other != key and (selector := self._selectors.get(other)) is not None
        ]
        for pod in pods if others else ():
            labels = pod["metadata"].get("labels")
            names = [name for name, selector in others if selector.matches(labels)]
            if names and key[1] < min(names):
                place = f'"{key[0]}"/"{pod["metadata"]["name"]}"'
                text = f'Pod {place} matches multiple PodDisruptionBudgets.  Chose "{key[1]}" arbitrarily.'
                self.events.emit(pod, "Warning", "MultiplePodDisruptionBudgets", text)

    def _expected(self, spec: Object, pods: list[Object], namespace: str) -> Expected:
        if spec.get("maxUnavailable") is not None:
            expected, unmanaged = self._scale(pods, namespace)
            healthy = max(expected - scaled(spec["maxUnavailable"], expected, up=True), 0)
            return Expected(expected, healthy, unmanaged)
        least = spec.get("minAvailable")
        if isinstance(least, str):
            expected, unmanaged = self._scale(pods, namespace)
            return Expected(expected, scaled(least, expected, up=True), unmanaged)
        return Expected(len(pods), least or 0)

    def _scale(self, pods: list[Object], namespace: str) -> tuple[int, bool]:
        """Sum of the replicas of the pods' controllers, and whether some pods have no controller."""
        scales: dict[str, int] = {}
        seen: set[str] = set()
        unmanaged = False
        for pod in pods:
            reference = controller_of(pod)
            if reference is None:
                unmanaged = True
                continue
            if reference["uid"] in seen:
                continue
            seen.add(reference["uid"])
            pair = self._owner(reference, namespace)
            above = controller_of(pair[0]) if pair is not None else None
            if pair is not None and above is not None and above.get("kind") == "Deployment":
                pair = self._owner(above, namespace) or pair
            if pair is None:
                raise LookupError(f'found no controllers for pod "{pod["metadata"]["name"]}"')
            owner, scale = pair
            scales[owner["metadata"]["uid"]] = scale.values(owner)[0] or 0
        return sum(scales.values()), unmanaged

    def _owner(self, reference: Object, namespace: str) -> tuple[Object, Scale] | None:
        """Controller with a scale subresource, and that subresource."""
        group, _, version = reference.get("apiVersion", "").rpartition("/")
        kind = self.client.find_kind(group, version, reference.get("kind", ""))
        scale = kind.strategy.subresources.get("scale") if kind is not None else None
        if kind is None or not isinstance(scale, Scale):
            return None
        owner = self.client.get(kind.resource, reference["name"], namespace, group=kind.group)
        if owner is None or owner["metadata"]["uid"] != reference["uid"]:
            return None
        return owner, scale

    def _disrupted(self, budget: Object, pods: list[Object], key: tuple[str, str]) -> Object:
        """Evicted pods that are not yet being deleted, with their eviction times."""
        evictions = budget["status"].get("disruptedPods") or {}
        left = {}
        for pod in pods:
            name = pod["metadata"]["name"]
            if name not in evictions or "deletionTimestamp" in pod["metadata"]:
                continue
            remaining = parse_time(evictions[name]) + DELETION_TIMEOUT - self.clock.now()
            if remaining > 0:
                left[name] = evictions[name]
                self.queue.add_after(key, remaining)
            else:
                # kube-controller-manager prints the namespace twice.
                text = f"Pod was expected by PDB {key[0]}/{key[0]} to be deleted but it wasn't"
                self.events.emit(pod, "Warning", "NotDeleted", text)
        return left

    async def _clear_target(self, key: tuple[str, str, str]) -> None:
        """Sets DisruptionTarget to False if an evicted pod was not deleted in time."""
        namespace, name, uid = key
        pod = self.client.get("pods", name, namespace)
        since = target_time(pod) if pod is not None and pod["metadata"]["uid"] == uid else None
        if since is None:
            return
        left = since + DELETION_TIMEOUT - self.clock.now()
        if left > 0:
            self.queue.add_after(key, left)
            return

        def edit(current: Object) -> Object | None:
            if current["metadata"]["uid"] != uid or target_time(current) is None:
                return None
            condition = find(current["status"]["conditions"], "DisruptionTarget")
            assert condition is not None
            for part in ("reason", "message"):
                condition.pop(part, None)
            condition |= {"status": "False", "lastTransitionTime": self.stamp()}
            return current

        await self.client.update("pods", name, namespace, edit, subresource="status")


def target_time(pod: Object) -> float | None:
    """Time since which a pod that is not being deleted has the condition DisruptionTarget."""
    condition = find(pod["status"].get("conditions"), "DisruptionTarget")
    if condition is None or condition["status"] != "True" or "deletionTimestamp" in pod["metadata"]:
        return None
    if condition.get("reason") == "TerminationByKubelet" or pod["status"].get("phase") in FINISHED:
        return None
    return parse_time(condition["lastTransitionTime"]) if condition.get("lastTransitionTime") else None


def budget_status(
    budget: Object, pods: list[Object], expected: Expected, disrupted: Object, now: str
) -> Object:
    """Status of a budget from its pods. `disrupted` are evicted pods that are not yet being deleted."""
    healthy = sum(
        "deletionTimestamp" not in pod["metadata"]
        and pod["metadata"]["name"] not in disrupted
        and pod_ready(pod)
        for pod in pods
    )
    allowed = max(healthy - expected.healthy, 0) if expected.pods > 0 else 0
    generation = budget["metadata"].get("generation", 0)
    conditions = [dict(item) for item in budget["status"].get("conditions") or ()]
    condition = {
        "type": "DisruptionAllowed",
        "status": "True" if allowed else "False",
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
        "observedGeneration": generation,
    }
    set_condition(conditions, condition, now)
    status: Object = {
        "currentHealthy": healthy,
        "desiredHealthy": expected.healthy,
        "disruptionsAllowed": allowed,
        "expectedPods": expected.pods,
        "observedGeneration": generation,
        "conditions": conditions,
    }
    return {**status, "disruptedPods": disrupted} if disrupted else status


def failed_status(budget: Object, error: str, now: str) -> Object:
    """Status of a budget whose expected pods are unknown: no disruption is allowed."""
    status: Object = {**budget["status"], "disruptionsAllowed": 0}
    status["conditions"] = [dict(item) for item in budget["status"].get("conditions") or ()]
    condition = {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": error}
    condition["observedGeneration"] = status.get("observedGeneration", 0)
    set_condition(status["conditions"], condition, now)
    return status
