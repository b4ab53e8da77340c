"""Deployment controller: one ReplicaSet per template, rollouts from old ReplicaSets to the new one."""

from __future__ import annotations

import copy
import time

from kubist.control.loop import controller_of
from kubist.control.values import scaled
from kubist.control.workloads import pods as of_pods
from kubist.control.workloads.pods import PodOwnerLoop
from kubist.meta import times
from kubist.meta.conditions import find, set_condition
from kubist.meta.object import Object
from kubist.meta.status import APIError
from kubist.meta.times import parse_time

HASH = "pod-template-hash"
PREFIX = "deployment.kubernetes.io/"
REVISION = f"{PREFIX}revision"
NOT_COPIED = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    f"{PREFIX}revision-history",
    f"{PREFIX}desired-replicas",
    f"{PREFIX}max-replicas",
)


class Deployments(PodOwnerLoop):
    name = "deployment"
    resource = "deployments"
    managed, managed_group = "replicasets", "apps"

    async def reconcile(self, key: tuple[str, str]) -> None:
        deployment = self.find(key)
        if deployment is None:
            return
        if "deletionTimestamp" in deployment["metadata"]:
            await self._status(key, deployment)
            return
        sets = await of_pods.claim(self.client, "replicasets", deployment, group="apps")
        new = newest(deployment, sets)
        paused = deployment["spec"].get("paused")
        if new is None and not paused:
            new = await self._create(deployment, sets)
        if new is not None:
            new = await self._note_revision(deployment, new, sets)
        old = [held for held in sets if new is None or held["metadata"]["uid"] != new["metadata"]["uid"]]
        if paused:
            active = [held for held in sets if held["spec"].get("replicas")] or sets[-1:]
            if len(active) == 1:
                await self._scale(deployment, active[0], deployment["spec"].get("replicas", 1))
        elif new is not None and deployment["spec"].get("strategy", {}).get("type") == "Recreate":
            await self._recreate(deployment, new, old)
        elif new is not None:
            await self._roll(deployment, new, old)
        await self._forget(deployment, old)
        await self._status(key, deployment)

    async def _create(self, deployment: Object, sets: list[Object]) -> Object:
        template = copy.deepcopy(deployment["spec"]["template"])
        digest = of_pods.template_hash(template)
        labels = {**(template["metadata"].get("labels") or {}), HASH: digest}
        template["metadata"]["labels"] = labels
        selector = copy.deepcopy(deployment["spec"]["selector"])
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH: digest}
        metadata = deployment["metadata"]
        new = {
            "metadata": {
                "name": f"{metadata['name']}-{digest}",
                "labels": labels,
                "annotations": _annotations(deployment, _revision_after(sets)),
                "ownerReferences": [of_pods.owner_reference(deployment)],
            },
            "spec": {"replicas": 0, "selector": selector, "template": template},
        }
        if deployment["spec"].get("minReadySeconds"):
            new["spec"]["minReadySeconds"] = deployment["spec"]["minReadySeconds"]
        try:
            return await self.client.create("replicasets", new, metadata["namespace"], group="apps")
        except APIError as error:
            found = self.client.get(
                "replicasets", new["metadata"]["name"], metadata["namespace"], group="apps"
            )
            if error.reason != "AlreadyExists" or found is None or not of_pods.owned(found, deployment):
                raise
            return found

    async def _note_revision(self, deployment: Object, new: Object, sets: list[Object]) -> Object:
        """Gives the newest ReplicaSet the highest revision, even if it is an older one that is used again."""
        others = [held for held in sets if held["metadata"]["uid"] != new["metadata"]["uid"]]
        revision = max(_revision_after(others), _revision(new))
        wanted = _annotations(deployment, revision)

        def edit(held: Object) -> Object:
            annotations = held["metadata"].setdefault("annotations", {})
            if annotations.get(REVISION, str(revision)) != str(revision):
                history = annotations.get(f"{PREFIX}revision-history", "")
                past = [*filter(None, history.split(",")), annotations[REVISION]]
                annotations[f"{PREFIX}revision-history"] = ",".join(past)
            annotations.update(wanted)
            held["spec"]["minReadySeconds"] = deployment["spec"].get("minReadySeconds", 0)
            if not held["spec"]["minReadySeconds"]:
                del held["spec"]["minReadySeconds"]
            return held

        def mark(held: Object) -> Object:
            held["metadata"].setdefault("annotations", {})[REVISION] = str(revision)
            return held

        metadata = new["metadata"]
        namespace = metadata["namespace"]
        changed = await self.client.update("replicasets", metadata["name"], namespace, edit, group="apps")
        await self.client.update("deployments", deployment["metadata"]["name"], namespace, mark, group="apps")
        return changed or new

    async def _scale(self, deployment: Object, held: Object, replicas: int) -> None:
        if held["spec"].get("replicas") == replicas:
            return
        limits = _limits(deployment)

        def edit(obj: Object) -> Object:
            obj["spec"]["replicas"] = replicas
            obj["metadata"].setdefault("annotations", {}).update(limits)
            return obj

        metadata = held["metadata"]
        await self.client.update("replicasets", metadata["name"], metadata["namespace"], edit, group="apps")

    async def _recreate(self, deployment: Object, new: Object, old: list[Object]) -> None:
        for held in old:
            await self._scale(deployment, held, 0)
        uids = {held["metadata"]["uid"] for held in old}
        for entry in self.client.labelled("pods", deployment["metadata"]["namespace"]):
            reference = controller_of(entry.object())
            if reference is not None and reference["uid"] in uids:
                return
        await self._scale(deployment, new, deployment["spec"].get("replicas", 1))

    async def _roll(self, deployment: Object, new: Object, old: list[Object]) -> None:
        wanted = deployment["spec"].get("replicas", 1)
        surge, unavailable = _bounds(deployment)
        running = sum(held["spec"].get("replicas", 0) for held in (*old, new))
        current = new["spec"].get("replicas", 0)
        if current > wanted:
            await self._scale(deployment, new, wanted)
        elif current < wanted and running < wanted + surge:
            await self._scale(deployment, new, current + min(wanted + surge - running, wanted - current))
        spare = _available(new, *old) - (wanted - unavailable)
        for held in sorted(old, key=lambda held: held["metadata"]["creationTimestamp"]):
            replicas = held["spec"].get("replicas", 0)
            unhealthy = max(replicas - _available(held), 0)
            going = min(replicas, unhealthy + max(spare, 0))
            if going:
                spare -= max(going - unhealthy, 0)
                await self._scale(deployment, held, replicas - going)

    async def _forget(self, deployment: Object, old: list[Object]) -> None:
        """Deletes the oldest ReplicaSets without pods above revisionHistoryLimit."""
        limit = deployment["spec"].get("revisionHistoryLimit", 10)
        idle = [
            held for held in old if not held["spec"].get("replicas") and not held["status"].get("replicas")
        ]
        idle.sort(key=_revision)
        for held in idle[: max(len(idle) - limit, 0)]:
            await of_pods.delete(self.client, held, "replicasets", group="apps")

    async def _status(self, key: tuple[str, str], deployment: Object) -> None:
        deployment = self.find(key) or deployment
        sets = await of_pods.claim(self.client, "replicasets", deployment, group="apps")
        new = newest(deployment, sets)
        wanted = deployment["spec"].get("replicas", 1)
        total = sum(held["status"].get("replicas", 0) for held in sets)
        updated = new["status"].get("replicas", 0) if new is not None else 0
        available = _available(*sets)
        conditions = [dict(held) for held in deployment["status"].get("conditions") or ()]
        status: Object = {
            "observedGeneration": deployment["metadata"].get("generation"),
            "replicas": total or None,
            "updatedReplicas": updated or None,
            "readyReplicas": sum(held["status"].get("readyReplicas", 0) for held in sets) or None,
            "availableReplicas": available or None,
            "unavailableReplicas": max(total - available, 0) or None,
            "conditions": conditions,
        }
        enough = available >= wanted - _bounds(deployment)[1]
        word = "has minimum availability" if enough else "does not have minimum availability"
        _set_condition(
            conditions,
            "Available",
            enough,
            f"MinimumReplicas{'Available' if enough else 'Unavailable'}",
            f"Deployment {word}.",
        )
        self._progress(key, deployment, new, status)
        await self.write_status(deployment, status)

    def _progress(self, key: tuple[str, str], deployment: Object, new: Object | None, status: Object) -> None:
        """Sets the Progressing condition: state of the rollout, and its deadline."""
        wanted = deployment["spec"].get("replicas", 1)
        counts = [status[name] or 0 for name in ("replicas", "updatedReplicas", "availableReplicas")]
        complete = new is not None and counts == [wanted, wanted, wanted]
        name = f'ReplicaSet "{new["metadata"]["name"]}"' if new is not None else "Deployment"
        conditions = status["conditions"]
        if deployment["spec"].get("paused"):
            _set_condition(conditions, "Progressing", None, "DeploymentPaused", "Deployment is paused")
            return
        if complete:
            _set_condition(
                conditions,
                "Progressing",
                True,
                "NewReplicaSetAvailable",
                f"{name} has successfully progressed.",
            )
            return
        before = deployment["status"]
        moved = any((before.get(part) or 0) != (status[part] or 0) for part in PROGRESS) or (
            before.get("observedGeneration") != status["observedGeneration"]
        )
        condition = find(conditions, "Progressing")
        if condition is None or moved or condition.get("reason") == "NewReplicaSetAvailable":
            reason = "ReplicaSetUpdated" if condition is not None else "NewReplicaSetCreated"
            verb = (
                "is progressing."
                if condition is not None
                else "has been created"
                if new is None
                else "is progressing."
            )
            _set_condition(conditions, "Progressing", True, reason, f"{name} {verb}", touch=True)
            condition = find(conditions, "Progressing")
        deadline = deployment["spec"].get("progressDeadlineSeconds")
        if condition is None or deadline is None:
            return
        left = parse_time(condition["lastUpdateTime"]) + deadline - time.time()
        if left > 0:
            self.queue.add_after(key, left)
        elif condition.get("reason") != "ProgressDeadlineExceeded":
            _set_condition(
                conditions,
                "Progressing",
                False,
                "ProgressDeadlineExceeded",
                f"{name} has timed out progressing.",
            )


PROGRESS = ("updatedReplicas", "readyReplicas", "availableReplicas", "replicas")


def newest(deployment: Object, sets: list[Object]) -> Object | None:
    """The ReplicaSet with the deployment's present template; the oldest of several."""
    wanted = deployment["spec"]["template"]
    same = [held for held in sets if _unhashed(held["spec"]["template"]) == _unhashed(wanted)]
    return min(same, key=lambda held: held["metadata"]["creationTimestamp"], default=None)


def _unhashed(template: Object) -> Object:
    labels = {key: value for key, value in (template["metadata"].get("labels") or {}).items() if key != HASH}
    return {**template, "metadata": {**template["metadata"], "labels": labels}}


def _revision(held: Object) -> int:
    text = (held["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if text.isdigit() else 0


def _revision_after(sets: list[Object]) -> int:
    return max((_revision(held) for held in sets), default=0) + 1


def _annotations(deployment: Object, revision: int) -> Object:
    given = deployment["metadata"].get("annotations") or {}
    kept = {key: value for key, value in given.items() if key not in NOT_COPIED}
    return {**kept, REVISION: str(revision), **_limits(deployment)}


def _limits(deployment: Object) -> Object:
    wanted = deployment["spec"].get("replicas", 1)
    return {
        f"{PREFIX}desired-replicas": str(wanted),
        f"{PREFIX}max-replicas": str(wanted + _bounds(deployment)[0]),
    }


def _bounds(deployment: Object) -> tuple[int, int]:
    """maxSurge and maxUnavailable of a rollout as numbers of pods."""
    strategy = deployment["spec"].get("strategy") or {}
    wanted = deployment["spec"].get("replicas", 1)
    if strategy.get("type") == "Recreate":
        return 0, 0
    rolling = strategy.get("rollingUpdate") or {}
    surge = scaled(rolling.get("maxSurge"), wanted, up=True)
    unavailable = min(scaled(rolling.get("maxUnavailable"), wanted, up=False), wanted)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def _available(*sets: Object) -> int:
    return sum(held["status"].get("availableReplicas", 0) for held in sets)


def _set_condition(
    conditions: list[Object], kind: str, state: bool | None, reason: str, message: str, *, touch: bool = False
) -> None:
    """Sets a condition, with the lastUpdateTime that deployments have. `touch` renews it without a change."""
    now = times.now()
    condition = {"type": kind, "status": {True: "True", False: "False", None: "Unknown"}[state]}
    condition |= {"reason": reason, "message": message}
    before = find(conditions, kind)
    same = before is not None and all(before.get(part) == value for part, value in condition.items())
    if before is not None and same and not touch:
        return
    set_condition(conditions, {**condition, "lastUpdateTime": now}, now)
