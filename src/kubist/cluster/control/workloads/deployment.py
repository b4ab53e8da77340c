"""Deployment controller: one ReplicaSet per template, rollouts from old ReplicaSets to the new one."""

from __future__ import annotations

import copy
from dataclasses import dataclass

from kubist.cluster.control.workloads import deployment_rollout
from kubist.cluster.control.workloads import pods as of_pods
from kubist.cluster.control.workloads.deployment_rollout import (
    HASH,
    PROGRESSING,
    REVISION,
    Scaling,
    deadline_in,
    has_deadline,
    is_complete,
    mark_paused,
    replicas,
    rollout_status,
    set_condition,
    set_progress,
)
from kubist.cluster.control.workloads.pods import PodOwnerLoop
from kubist.model.meta.conditions import find
from kubist.model.meta.numerals import decimal
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError


@dataclass(slots=True)
class Rollout:
    """A Deployment and its ReplicaSets during one pass."""

    deployment: Object
    new: Object | None
    old: list[Object]
    conditions: list[Object]
    annotations: Object
    """Conditions and annotations that the pass writes at its end."""

    @property
    def sets(self) -> list[Object]:
        return self.old if self.new is None else [*self.old, self.new]


class Deployments(PodOwnerLoop):
    name = "deployment"
    component = "deployment-controller"
    resource = "deployments"
    managed, managed_group = "replicasets", "apps"

    async def reconcile(self, key: tuple[str, str]) -> None:
        deployment = self.find(key)
        if deployment is None:
            return
        if not deployment["spec"].get("selector"):
            text = "This deployment is selecting all pods. A non-empty selector is required."
            self.events.emit(deployment, "Warning", "SelectingAll", text)
            generation = deployment["metadata"].get("generation")
            await self.write_status(deployment, {**deployment["status"], "observedGeneration": generation})
            return
        sets = await self.claim(deployment)
        new = deployment_rollout.newest(deployment, sets)
        old = [each for each in sets if each is not new]
        conditions = [dict(each) for each in deployment["status"].get("conditions") or ()]
        annotations = dict(deployment["metadata"].get("annotations") or {})
        state = Rollout(deployment, new, old, conditions, annotations)
        if "deletionTimestamp" in deployment["metadata"]:
            await self._write(state)
            return
        mark_paused(deployment, conditions, self.stamp())
        if not deployment["spec"].get("paused") and deployment_rollout.ROLLBACK in annotations:
            await self._roll_back(state)
            return
        await self._update_new(state)
        if deployment["spec"].get("paused") or deployment_rollout.is_scaled(deployment, state.sets):
            await self._scale_all(state, deployment_rollout.resize(deployment, state.new, old))
            if deployment["spec"].get("paused"):
                await self._clean_up(state)
            await self._write(state)
            return
        rolls_out = self._roll if deployment_rollout.is_rolling(deployment) else self._recreate
        is_busy = await rolls_out(state)
        status = rollout_status(deployment, state.sets, state.new, conditions, self.stamp())
        set_progress(deployment, state.sets, state.new, status, self.clock.now(), self.stamp())
        if not is_busy and is_complete(deployment, status):
            await self._clean_up(state)
        await self.write_status(deployment, status, annotations)
        left = deadline_in(deployment, conditions, self.clock.now())
        if left is not None and left < 0:
            self.queue.add(key)
        elif left is not None:
            self.queue.add_after(key, left + 0.01)

    async def _write(self, state: Rollout) -> None:
        """Writes the counts without a judgement of progress."""
        status = rollout_status(state.deployment, state.sets, state.new, state.conditions, self.stamp())
        await self.write_status(state.deployment, status, state.annotations)

    async def _roll(self, state: Rollout) -> bool:
        """One step of a rolling update. False if there is nothing to scale now."""
        if state.new is None:
            await self._create(state)
            return True
        current = replicas(state.new)
        size = deployment_rollout.size_of_new(state.deployment, state.sets, current)
        if size != current:
            return await self._scale_all(state, [Scaling(state.new, size)])
        return await self._scale_all(
            state, deployment_rollout.scale_down(state.deployment, state.new, state.old)
        )

    async def _recreate(self, state: Rollout) -> bool:
        """One step of an update that deletes all old pods before it creates new ones."""
        active = [Scaling(replica_set, 0) for replica_set in state.old if replicas(replica_set)]
        if await self._scale_all(state, active) or deployment_rollout.has_old_pods(state.old):
            return True
        if state.new is None:
            await self._create(state)
            return True
        return await self._scale_all(state, [Scaling(state.new, replicas(state.deployment))])

    async def _create(self, state: Rollout) -> None:
        """Creates the ReplicaSet of the present template."""
        deployment = state.deployment
        new = self._new_set(state)
        name = new["metadata"]["name"]
        created = True
        try:
            state.new = await self.client.create(
                "replicasets", new, deployment["metadata"]["namespace"], group="apps"
            )
        except APIError as error:
            if error.reason != "AlreadyExists":
                await self._report_failure(state, name, error)
                raise
            state.new, created = await self._existing(state, name, error), False
        state.annotations[REVISION] = new["metadata"]["annotations"][REVISION]
        if not created:
            return
        if replicas(state.new):
            self._emit(deployment, f"Scaled up replica set {name} from 0 to {replicas(state.new)}")
        if has_deadline(deployment):
            text = f'Created new replica set "{name}"'
            set_condition(state.conditions, PROGRESSING, "True", "NewReplicaSetCreated", text, self.stamp())

    def _new_set(self, state: Rollout) -> Object:
        deployment = state.deployment
        template = copy.deepcopy(deployment["spec"]["template"])
        digest = of_pods.template_hash(template, deployment["status"].get("collisionCount", 0))
        labels = {**(template.get("metadata", {}).get("labels") or {}), HASH: digest}
        template.setdefault("metadata", {})["labels"] = labels
        selector = copy.deepcopy(deployment["spec"]["selector"])
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH: digest}
        number = max(map(deployment_rollout.revision, state.old), default=0) + 1
        own = {REVISION: str(number), **deployment_rollout.limits(deployment)}
        spec = {"selector": selector, "template": template}
        spec["replicas"] = deployment_rollout.size_of_new(deployment, state.old, 0)
        if deployment["spec"].get("minReadySeconds"):
            spec["minReadySeconds"] = deployment["spec"]["minReadySeconds"]
        return {
            "metadata": {
                "name": deployment_rollout.set_name(deployment, digest),
                "labels": labels,
                "annotations": {**deployment_rollout.copied_annotations(deployment), **own},
                "ownerReferences": [of_pods.owner_reference(deployment)],
            },
            "spec": spec,
        }

    async def _existing(self, state: Rollout, name: str, error: APIError) -> Object:
        """The ReplicaSet of the same name, if it belongs to the deployment and has its template. Otherwise the hash
        collides: collisionCount changes the next name."""
        deployment = state.deployment
        stored = self.client.get("replicasets", name, deployment["metadata"]["namespace"], group="apps")
        if (
            stored is not None
            and of_pods.owned(stored, deployment)
            and deployment_rollout.newest(deployment, [stored])
        ):
            return stored
        count = deployment["status"].get("collisionCount", 0) + 1
        await self.write_status(deployment, {**deployment["status"], "collisionCount": count})
        raise error

    async def _report_failure(self, state: Rollout, name: str, error: APIError) -> None:
        if of_pods.is_namespace_terminating(error):
            return
        deployment = state.deployment
        text = f'Failed to create new replica set "{name}": {error}'
        self.events.emit(deployment, "Warning", "ReplicaSetCreateError", text)
        if has_deadline(deployment):
            reason = "ReplicaSetCreateError"
            set_condition(state.conditions, PROGRESSING, "False", reason, text, self.stamp())
            await self.write_status(deployment, {**deployment["status"], "conditions": state.conditions})

    async def _update_new(self, state: Rollout) -> None:
        """Copies annotations, revision and minReadySeconds to the new ReplicaSet, if it exists."""
        new, deployment = state.new, state.deployment
        if new is None:
            return
        annotations = deployment_rollout.updated_annotations(deployment, new, state.old)
        seconds = deployment["spec"].get("minReadySeconds", 0)
        if annotations != (new["metadata"].get("annotations") or {}) or seconds != new["spec"].get(
            "minReadySeconds", 0
        ):

            def edit(current: Object) -> Object:
                current["metadata"]["annotations"] = deployment_rollout.updated_annotations(
                    deployment, current, state.old
                )
                current["spec"]["minReadySeconds"] = seconds
                if not seconds:
                    del current["spec"]["minReadySeconds"]
                return current

            state.new = await self._update_set(new, edit)
        state.annotations[REVISION] = annotations.get(REVISION, "")
        if has_deadline(deployment) and find(state.conditions, PROGRESSING) is None:
            text = f'Found new replica set "{new["metadata"]["name"]}"'
            set_condition(state.conditions, PROGRESSING, "True", "FoundNewReplicaSet", text, self.stamp())

    async def _scale_all(self, state: Rollout, steps: list[Scaling]) -> bool:
        """Scales ReplicaSets. False if no size changed."""
        any_scaled = False
        limits = deployment_rollout.limits(state.deployment)
        for step in steps:
            before, name = replicas(step.replica_set), step.replica_set["metadata"]["name"]
            if before == step.replicas and not step.always:
                continue

            def edit(obj: Object, step: Scaling = step) -> Object:
                obj["spec"]["replicas"] = step.replicas
                obj["metadata"]["annotations"] = {**(obj["metadata"].get("annotations") or {}), **limits}
                return obj

            changed = await self._update_set(step.replica_set, edit)
            if state.new is step.replica_set:
                state.new = changed
            state.old = [changed if obj is step.replica_set else obj for obj in state.old]
            if before != step.replicas:
                any_scaled = True
                way = "up" if before < step.replicas else "down"
                text = f"Scaled {way} replica set {name} from {before} to {step.replicas}"
                self._emit(state.deployment, text)
        return any_scaled

    async def _update_set(self, replica_set: Object, edit: of_pods.Edit) -> Object:
        metadata = replica_set["metadata"]
        return (
            await self.client.update(
                "replicasets", metadata["name"], metadata["namespace"], edit, group="apps"
            )
            or replica_set
        )

    async def _clean_up(self, state: Rollout) -> None:
        """Deletes ReplicaSets above revisionHistoryLimit."""
        for replica_set in deployment_rollout.removable(state.deployment, state.old):
            await of_pods.delete(self.client, replica_set, "replicasets", group="apps")

    async def _roll_back(self, state: Rollout) -> None:
        """Rolls back to the revision in the deprecated annotation that old clients set. 0 is the last revision before
        the present one. The annotation is removed in any case."""
        deployment = state.deployment
        text = state.annotations[deployment_rollout.ROLLBACK]
        numbers = sorted(map(deployment_rollout.revision, state.sets))
        revision = decimal(text) if text.isdecimal() else -1
        if revision == 0 and len(numbers) > 1:
            revision = numbers[-2]
        target = next((obj for obj in state.sets if deployment_rollout.revision(obj) == revision), None)
        changes = False
        if revision <= 0 or target is None:
            which = "last revision" if revision == 0 else "the revision to rollback to"
            self._warn(deployment, "DeploymentRollbackRevisionNotFound", f"Unable to find {which}.")
        elif target is state.new:
            name = deployment["metadata"]["name"]
            text = f'The rollback revision contains the same template as current deployment "{name}"'
            self._warn(deployment, "DeploymentRollbackTemplateUnchanged", text)
        else:
            changes = True

        def edit(obj: Object) -> Object:
            annotations = obj["metadata"].get("annotations") or {}
            if changes and target is not None:
                obj["spec"]["template"] = copy.deepcopy(
                    deployment_rollout.unhashed(target["spec"]["template"])
                )
                kept = {
                    key: value for key, value in annotations.items() if key in deployment_rollout.NOT_COPIED
                }
                annotations = {**kept, **deployment_rollout.copied_annotations(target)}
            annotations.pop(deployment_rollout.ROLLBACK, None)
            obj["metadata"]["annotations"] = annotations
            return obj

        metadata = deployment["metadata"]
        await self.client.update("deployments", metadata["name"], metadata["namespace"], edit, group="apps")
        if changes:
            text = f'Rolled back deployment "{metadata["name"]}" to revision {revision}'
            self.events.emit(deployment, "Normal", "DeploymentRollback", text)

    def _emit(self, deployment: Object, text: str) -> None:
        self.events.emit(deployment, "Normal", "ScalingReplicaSet", text)

    def _warn(self, deployment: Object, reason: str, text: str) -> None:
        self.events.emit(deployment, "Warning", reason, text)
