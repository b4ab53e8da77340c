"""StatefulSet controller: pods with stable names and claims, created, replaced and deleted in order."""

from __future__ import annotations

import copy

from kubist.cluster.control.workloads import claims, revisions, statefulplan
from kubist.cluster.control.workloads import pods as of_pods
from kubist.cluster.control.workloads.pods import PodOwnerLoop
from kubist.cluster.control.workloads.revisions import HASH_LABEL, STATEFUL_HASH_LABEL
from kubist.cluster.control.workloads.statefulplan import POD_INDEX, POD_NAME, ordinal
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError

STALE_SECONDS = 1.0
"""Time after which a set looks again at claims that wait for their deletion."""


class StatefulSets(PodOwnerLoop):
    name = "statefulset"
    component = "statefulset-controller"
    resource = "statefulsets"

    def may_claim(self, owner: Object, obj: Object) -> bool:
        return ordinal(owner, obj) >= 0

    async def reconcile(self, key: tuple[str, str]) -> None:
        owner = self.find(key)
        if owner is None:
            return
        claimed = await self.claim(owner)
        history = await revisions.history(self.client, owner, STATEFUL_HASH_LABEL)
        names = {revision["metadata"]["name"]: revision for revision in history.all}
        update = history.present
        current = names.get(owner["status"].get("currentRevision", ""), update)
        pods = {ordinal(owner, pod): pod for pod in claimed}
        failure: APIError | None = None
        now = self.clock.now()
        if "deletionTimestamp" not in owner["metadata"]:
            plan = statefulplan.plan(owner, pods, update["metadata"]["name"], now)
            try:
                await self._carry_out(owner, plan, update, current)
            except APIError as error:
                failure = error
        status = statefulplan.stateful_status(
            owner,
            list(pods.values()),
            current["metadata"]["name"],
            update["metadata"]["name"],
            history.collisions,
            now,
        )
        await self.write_status(owner, status)
        used = {statefulplan.revision_of(pod) for pod in pods.values()}
        used |= {update["metadata"]["name"], current["metadata"]["name"]}
        limit = owner["spec"].get("revisionHistoryLimit", 10)
        await revisions.delete_unused(self.client, history.all, used, limit)
        if failure is not None:
            raise failure
        self.check_later(key, claimed, owner["spec"].get("minReadySeconds", 0), now)

    async def _carry_out(
        self, owner: Object, plan: statefulplan.Plan, update: Object, current: Object
    ) -> None:
        for pod in plan.check:
            await self._check(owner, pod)

        async def create(number: int) -> None:
            index = plan.create[number]
            revision = current if statefulplan.keeps_current(owner, index) else update
            await self._create(owner, index, revision)

        await of_pods.slow_start(len(plan.create), create)
        doomed = [*plan.delete, *plan.update]
        await of_pods.slow_start(len(doomed), lambda number: self._delete(owner, doomed[number]))

    async def _create(self, owner: Object, index: int, revision: Object) -> None:
        metadata = owner["metadata"]
        name = f"{metadata['name']}-{index}"
        template = copy.deepcopy(revision["data"]["spec"]["template"])
        template.pop("$patch", None)
        pod = of_pods.from_template(template, owner, name)
        pod["metadata"].setdefault("labels", {}).update(
            {POD_NAME: name, POD_INDEX: str(index), HASH_LABEL: revision["metadata"]["name"]}
        )
        pod["spec"]["hostname"] = name
        if owner["spec"].get("serviceName"):
            pod["spec"]["subdomain"] = owner["spec"]["serviceName"]
        wanted = claims.claims_of(owner, index)
        claims.add_volumes(pod, wanted)
        if self._has_stale_claim(owner, wanted, name):
            self.queue.add_soon((metadata["namespace"], metadata["name"]), STALE_SECONDS)
            return
        try:
            await self._create_claims(owner, wanted, name)
            made = await self.client.create("pods", pod, metadata["namespace"])
            await self._set_claim_owners(owner, made)
        except APIError as error:
            if error.reason != "AlreadyExists" and not of_pods.is_namespace_terminating(error):
                self._emit(owner, "create", f"Pod {name}", error)
            raise
        self._emit(owner, "create", f"Pod {name}")

    async def _delete(self, owner: Object, pod: Object) -> None:
        name = pod["metadata"]["name"]
        try:
            await of_pods.delete(self.client, pod)
        except APIError as error:
            self._emit(owner, "delete", f"Pod {name}", error)
            raise
        self._emit(owner, "delete", f"Pod {name}")

    async def _check(self, owner: Object, pod: Object) -> None:
        """Repairs the labels and claims of a pod."""
        name = pod["metadata"]["name"]
        if pod["status"].get("phase") == "Pending":
            await self._create_claims(owner, claims.claims_of(owner, ordinal(owner, pod)), name)
        await self._set_claim_owners(owner, pod)
        if (pod["metadata"].get("labels") or {}).get(POD_NAME) == name:
            return

        def edit(held: Object) -> Object:
            labels = {POD_NAME: name, POD_INDEX: str(ordinal(owner, pod))}
            held["metadata"]["labels"] = {**(held["metadata"].get("labels") or {}), **labels}
            return held

        await self.client.update("pods", name, pod["metadata"]["namespace"], edit)
        self._emit(owner, "update", f"Pod {name}")

    def _has_stale_claim(self, owner: Object, wanted: dict[str, Object], pod_name: str) -> bool:
        for claim in wanted.values():
            held = self._claim(owner, claim["metadata"]["name"])
            if held is not None and claims.is_stale(held, owner, pod_name):
                return True
        return False

    def _claim(self, owner: Object, name: str) -> Object | None:
        return self.client.get("persistentvolumeclaims", name, owner["metadata"]["namespace"])

    async def _create_claims(self, owner: Object, wanted: dict[str, Object], pod_name: str) -> None:
        """Creates the missing claims of a pod."""
        for claim in wanted.values():
            name = claim["metadata"]["name"]
            held = self._claim(owner, name)
            if held is not None:
                if "deletionTimestamp" in held["metadata"]:
                    raise APIError(409, "Conflict", f"pvc {name} is being deleted")
                continue
            try:
                await self.client.create("persistentvolumeclaims", claim, owner["metadata"]["namespace"])
            except APIError as error:
                if error.reason == "AlreadyExists":
                    continue
                self._emit(owner, "create", f"Claim {name} for Pod {pod_name}", error)
                why = f"failed to create PVC {name}: {error}"
                raise APIError(error.code, error.reason, why, error.details) from error
            self._emit(owner, "create", f"Claim {name} Pod {pod_name}", done="success")

    async def _set_claim_owners(self, owner: Object, pod: Object) -> None:
        """Sets the owners of a pod's claims by the retention policy of the set."""
        for claim in claims.claims_of(owner, ordinal(owner, pod)).values():
            name = claim["metadata"]["name"]
            held = self._claim(owner, name)
            if held is None:
                continue
            if claims.has_other_controller(held, owner, pod):
                text = (
                    f"PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging "
                    "controller, the retention policy is ignored for this claim"
                )
                self.events.emit(owner, "Warning", "ConflictingController", text)

            def edit(found: Object) -> Object | None:
                wanted = claims.wanted_owners(found, owner, pod)
                if wanted is None:
                    return None
                found["metadata"]["ownerReferences"] = wanted
                if not wanted:
                    del found["metadata"]["ownerReferences"]
                return found

            if edit(copy.deepcopy(held)) not in (None, held):
                await self.client.update("persistentvolumeclaims", name, owner["metadata"]["namespace"], edit)

    def _emit(
        self, owner: Object, verb: str, about: str, error: APIError | None = None, done: str = "successful"
    ) -> None:
        """Records the result of an action as an Event of the set."""
        text = f"{verb.title()} {about} in StatefulSet {owner['metadata']['name']}"
        if error is None:
            self.events.emit(owner, "Normal", f"Successful{verb.title()}", f"{text} {done}")
        else:
            self.events.emit(owner, "Warning", f"Failed{verb.title()}", f"{text} failed error: {error}")
