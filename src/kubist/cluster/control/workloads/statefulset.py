"""StatefulSet controller: pods with stable names and claims, created, replaced and deleted in order."""

from __future__ import annotations

import copy

from kubist.cluster.control.workloads import pods as of_pods
from kubist.cluster.control.workloads import revisions, statefulset_plan
from kubist.cluster.control.workloads.pods import PodOwnerLoop, owner_reference
from kubist.cluster.control.workloads.revisions import HASH_LABEL, STATEFUL_HASH_LABEL
from kubist.cluster.control.workloads.statefulset_plan import POD_INDEX, POD_NAME, ordinal, ordinals
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError

STALE_SECONDS = 1.0
"""Seconds after which a set checks again claims that wait for their deletion."""


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
            plan = statefulset_plan.plan(owner, pods, update["metadata"]["name"], now)
            try:
                await self._carry_out(owner, plan, update, current)
            except APIError as error:
                failure = error
        status = statefulset_plan.stateful_status(
            owner,
            list(pods.values()),
            current["metadata"]["name"],
            update["metadata"]["name"],
            history.collisions,
            now,
        )
        await self.write_status(owner, status)
        used = {statefulset_plan.revision_of(pod) for pod in pods.values()}
        used |= {update["metadata"]["name"], current["metadata"]["name"]}
        limit = owner["spec"].get("revisionHistoryLimit", 10)
        await revisions.delete_unused(self.client, history.all, used, limit)
        if failure is not None:
            raise failure
        self.check_later(key, claimed, owner["spec"].get("minReadySeconds", 0), now)

    async def _carry_out(
        self, owner: Object, plan: statefulset_plan.Plan, update: Object, current: Object
    ) -> None:
        for pod in plan.check:
            await self._check(owner, pod)

        async def create(number: int) -> None:
            index = plan.create[number]
            revision = current if statefulset_plan.keeps_current(owner, index) else update
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
        pod_claims = claims_of(owner, index)
        add_volumes(pod, pod_claims)
        if self._has_stale_claim(owner, pod_claims, name):
            self.queue.add_soon((metadata["namespace"], metadata["name"]), STALE_SECONDS)
            return
        try:
            await self._create_claims(owner, pod_claims, name)
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
            await self._create_claims(owner, claims_of(owner, ordinal(owner, pod)), name)
        await self._set_claim_owners(owner, pod)
        if (pod["metadata"].get("labels") or {}).get(POD_NAME) == name:
            return

        def edit(current: Object) -> Object:
            labels = {POD_NAME: name, POD_INDEX: str(ordinal(owner, pod))}
            current["metadata"]["labels"] = {**(current["metadata"].get("labels") or {}), **labels}
            return current

        await self.client.update("pods", name, pod["metadata"]["namespace"], edit)
        self._emit(owner, "update", f"Pod {name}")

    def _has_stale_claim(self, owner: Object, pod_claims: dict[str, Object], pod_name: str) -> bool:
        for claim in pod_claims.values():
            stored_claim = self._claim(owner, claim["metadata"]["name"])
            if stored_claim is not None and is_stale(stored_claim, owner, pod_name):
                return True
        return False

    def _claim(self, owner: Object, name: str) -> Object | None:
        return self.client.get("persistentvolumeclaims", name, owner["metadata"]["namespace"])

    async def _create_claims(self, owner: Object, pod_claims: dict[str, Object], pod_name: str) -> None:
        """Creates the missing claims of a pod."""
        for claim in pod_claims.values():
            name = claim["metadata"]["name"]
            stored_claim = self._claim(owner, name)
            if stored_claim is not None:
                if "deletionTimestamp" in stored_claim["metadata"]:
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
        for claim in claims_of(owner, ordinal(owner, pod)).values():
            name = claim["metadata"]["name"]
            stored_claim = self._claim(owner, name)
            if stored_claim is None:
                continue
            if has_other_controller(stored_claim, owner, pod):
                text = (
                    f"PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging "
                    "controller, the retention policy is ignored for this claim"
                )
                self.events.emit(owner, "Warning", "ConflictingController", text)

            def edit(current: Object) -> Object | None:
                references = wanted_owners(current, owner, pod)
                if references is None:
                    return None
                current["metadata"]["ownerReferences"] = references
                if not references:
                    del current["metadata"]["ownerReferences"]
                return current

            if edit(copy.deepcopy(stored_claim)) not in (None, stored_claim):
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


# PersistentVolumeClaims: claims from templates, and owners by the retention policy

_RETAIN = "Retain"


def claims_of(owner: Object, index: int) -> dict[str, Object]:
    """Claims of a pod by the name of their volume."""
    labels = owner["spec"]["selector"].get("matchLabels") or {}
    claims = {}
    for template in owner["spec"].get("volumeClaimTemplates") or ():
        kept = template["metadata"]
        metadata: Object = {"name": f"{kept['name']}-{owner['metadata']['name']}-{index}"}
        metadata["labels"] = {**(kept.get("labels") or {}), **labels}
        if kept.get("annotations"):
            metadata["annotations"] = dict(kept["annotations"])
        claims[kept["name"]] = {"metadata": metadata, "spec": copy.deepcopy(template["spec"])}
    return claims


def add_volumes(pod: Object, claims: dict[str, Object]) -> None:
    """Adds the claims to a new pod as volumes. They replace volumes of the same name."""
    if not claims:
        return
    volumes = [
        {"name": name, "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}
        for name, claim in claims.items()
    ]
    kept = [volume for volume in pod["spec"].get("volumes") or () if volume["name"] not in claims]
    pod["spec"]["volumes"] = [*volumes, *kept]


def policy_of(owner: Object) -> tuple[str, str]:
    """whenDeleted and whenScaled of the retention policy."""
    policy = owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return policy.get("whenDeleted", _RETAIN), policy.get("whenScaled", _RETAIN)


def is_stale(claim: Object, owner: Object, pod_name: str) -> bool:
    """Whether a claim waits for its deletion with an earlier pod of this name. A new pod must wait for it."""
    return policy_of(owner)[1] != _RETAIN and any(
        reference.get("kind") == "Pod" and reference.get("name") == pod_name
        for reference in claim["metadata"].get("ownerReferences") or ()
    )


def wanted_owners(claim: Object, owner: Object, pod: Object) -> list[Object] | None:
    """ownerReferences of a claim by the retention policy. None if they must not change: the claim still belongs to an
    earlier set or pod of the same name."""
    references = claim["metadata"].get("ownerReferences") or []
    ours = [reference for reference in references if _names(reference, owner) or _names(reference, pod)]
    uids = (owner["metadata"]["uid"], pod["metadata"]["uid"])
    if any(reference.get("uid") not in uids for reference in ours):
        return None
    others = [reference for reference in references if reference not in ours]
    if has_other_controller(claim, owner, pod):
        return others
    when_deleted, when_scaled = policy_of(owner)
    is_surplus = ordinal(owner, pod) not in ordinals(owner)
    if when_scaled != _RETAIN and is_surplus:
        return [*others, owner_reference(pod)]
    if when_deleted != _RETAIN:
        return [*others, owner_reference(owner)]
    return others


def has_other_controller(claim: Object, owner: Object, pod: Object) -> bool:
    """Whether another controller owns a claim that the retention policy would delete."""
    if policy_of(owner) == (_RETAIN, _RETAIN):
        return False
    return any(
        reference.get("controller") and not _names(reference, owner) and not _names(reference, pod)
        for reference in claim["metadata"].get("ownerReferences") or ()
    )


def _names(reference: Object, obj: Object) -> bool:
    return (reference.get("apiVersion"), reference.get("kind"), reference.get("name")) == (
        obj["apiVersion"],
        obj["kind"],
        obj["metadata"]["name"],
    )
