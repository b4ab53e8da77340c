"""Pod `/eviction`: deletes a pod if its PodDisruptionBudget allows that."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from kubist.api.kinds.shared.pod_conditions import is_ready, set_pod_condition
from kubist.api.resources.strategy import Create
from kubist.model.meta.conditions import find, set_condition
from kubist.model.meta.fields import invalid, not_supported
from kubist.model.meta.labels import selector_matches
from kubist.model.meta.object import Object
from kubist.model.meta.status import (
    APIError,
    bad_request,
    conflict,
    forbidden,
    not_found,
    plain_error,
    success,
    too_many_requests,
)
from kubist.model.meta.status import invalid as invalid_status
from kubist.model.patch import apply as ssa
from kubist.model.schema.catalog import schema_for

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

_POLICIES = ("Foreground", "Background", "Orphan")
_UNSAFE = "ignoreStoreReadErrorWithClusterBreakingPotential"


class PodEviction(Create):
    group = "policy"
    kind = "Eviction"
    accepts = (("policy", "v1beta1"),)

    async def create(self, ctx: Context, body: Object) -> Object:
        if body["metadata"].get("name", "") != ctx.name:
            raise bad_request("name in URL does not match name in Eviction object")
        options = _delete_options(ctx, body)
        pod = ctx.objects.get("pods", ctx.name, ctx.namespace)
        if pod is None:
            raise not_found("", "pods", ctx.name)
        pinned = options.get("preconditions", {}).get("resourceVersion") is not None
        if _needs_no_budget(pod):
            await _evict(ctx, options)
            return success(201)
        budget = _budget_of(ctx, pod)
        guarded = budget is not None and not await self._charge(ctx, pod, budget)
        if guarded and not pinned:
            version = pod["metadata"]["resourceVersion"]
            options["preconditions"] = {**options.get("preconditions", {}), "resourceVersion": version}
        try:
            await _evict(ctx, options)
        except APIError as error:
            if error.reason == "Conflict" and guarded and not pinned and budget is not None:
                raise _still_processed(budget["metadata"]["name"]) from None
            raise
        return success(201)

    async def _charge(self, ctx: Context, pod: Object, budget: Object) -> bool:
        """Takes one disruption from the budget. Returns False for an unready pod that may be evicted without one;
        the caller then pins the pod's resourceVersion."""
        if not is_ready(pod):
            status = budget.get("status") or {}
            healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
            always = budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
            if always or healthy >= desired > 0:
                return False
        await _take_disruption(ctx, budget, pod["metadata"]["name"])
        return True


def _delete_options(ctx: Context, body: Object) -> dict[str, Any]:
    options = dict(body.get("deleteOptions") or {})
    options.pop("kind", None)
    options.pop("apiVersion", None)
    if options.pop(_UNSAFE, False):
        why = "can not be set for pod eviction, try after removing the option"
        errors = [invalid(f"deleteOptions.{_UNSAFE}", True, why)]
        raise invalid_status("policy", "Eviction", ctx.name, errors)
    if dry_run := options.get("dryRun"):
        if ctx.dry_run and dry_run != ["All"]:
            values = " ".join(dry_run)
            raise plain_error(f"Non-matching dry-run options in request and content: [All] and [{values}]")
        ctx.dry_run = True
    return options


def _check_options(options: dict[str, Any], dry_run: list[str]) -> None:
    """422 for options that are not valid DeleteOptions."""
    errors = []
    policy = options.get("propagationPolicy")
    if policy is not None and options.get("orphanDependents") is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid("propagationPolicy", policy, why))
    if policy not in (None, *_POLICIES):
        errors.append(not_supported("propagationPolicy", policy, [*_POLICIES, "nil"]))
    if any(value != "All" for value in dry_run):
        errors.append(not_supported("dryRun", dry_run, ["All"]))
    if errors:
        raise invalid_status("meta.k8s.io", "DeleteOptions", "", errors)


def _needs_no_budget(pod: Object) -> bool:
    """Whether the pod is pending, finished or terminating, so that its eviction does not count as a disruption."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Pending", "Succeeded", "Failed") or "deletionTimestamp" in pod["metadata"]


def _budget_of(ctx: Context, pod: Object) -> Object | None:
    labels = pod["metadata"].get("labels")
    budgets = [
        budget
        for budget in ctx.objects.list("poddisruptionbudgets", ctx.namespace, group="policy")
        if selector_matches(budget["spec"].get("selector"), labels)
    ]
    if len(budgets) > 1:
        raise plain_error(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    return budgets[0] if budgets else None


async def _evict(ctx: Context, options: dict[str, Any]) -> None:
    """Sets the DisruptionTarget condition, then deletes the pod."""
    preconditions = options.get("preconditions") or {}
    dry_run = options.pop("dryRun", None) or []

    def check(pod: Object) -> None:
        for field, word, fate in (
            ("uid", "UID", "deleted and then recreated"),
            ("resourceVersion", "ResourceVersion", "modified"),
        ):
            expected, actual = preconditions.get(field), pod["metadata"].get(field)
            if expected and expected != actual:
                why = (
                    f"the {word} in the precondition ({expected}) does not match the {word} in record "
                    f"({actual}). The object might have been {fate}"
                )
                raise conflict("", "Pod", ctx.name, why)

    def mark(pod: Object) -> Object:
        check(pod)
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
        set_pod_condition(pod.setdefault("status", {}), condition, ctx.now)
        return pod

    if ctx.dry_run:
        pod = ctx.objects.get("pods", ctx.name, ctx.namespace)
        if pod is not None:
            check(pod)
        _check_options(options, dry_run)
        return
    marked = await ctx.objects.mutate("pods", ctx.name, ctx.namespace, mark)
    _check_options(options, dry_run)
    if preconditions.get("resourceVersion"):
        version = marked["metadata"]["resourceVersion"]
        options = {**options, "preconditions": {**preconditions, "resourceVersion": version}}
    await ctx.objects.delete("pods", ctx.name, ctx.namespace, **options)


_MAX_DISRUPTED_PODS = 2000
_VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget."


async def _take_disruption(ctx: Context, budget: Object, pod_name: str) -> None:
    """Takes one disruption from the budget for a pod. Raises 429 if the budget allows none."""

    def change(current: Object) -> Object:
        before = {
            **current,
            "metadata": dict(current["metadata"]),
            "status": deepcopy(current.get("status", {})),
        }
        status = current.setdefault("status", {})
        _check(current["metadata"], status)
        status["disruptionsAllowed"] -= 1
        if status["disruptionsAllowed"] == 0:
            condition = {
                "type": "DisruptionAllowed",
                "status": "False",
                "reason": "InsufficientPods",
                "message": "",
            }
            if status.get("observedGeneration"):
                condition["observedGeneration"] = status["observedGeneration"]
            set_condition(status.setdefault("conditions", []), condition, ctx.now)
        status.setdefault("disruptedPods", {})[pod_name] = ctx.now
        schema = schema_for("policy", "v1", "PodDisruptionBudget")
        ssa.own_status(schema, before, current, api_version="policy/v1", now=ctx.now)
        return current

    name = budget["metadata"]["name"]
    if ctx.dry_run:
        change(budget)
    else:
        await ctx.objects.mutate("poddisruptionbudgets", name, ctx.namespace, change, group="policy")


def _check(metadata: Object, status: Object) -> None:
    name = metadata["name"]
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        raise _still_processed(name)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise forbidden("policy", "poddisruptionbudget", name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or ()) > _MAX_DISRUPTED_PODS:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden("policy", "poddisruptionbudget", name, why)
    if allowed == 0:
        raise _refused(_reason(name, status), 0)


def _reason(name: str, status: Object) -> str:
    condition = find(status.get("conditions"), "DisruptionAllowed") or {}
    message = condition.get("message") if condition.get("status") == "False" else ""
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    refusal = f"The disruption budget {name} does not allow evicting pods currently"
    if message and condition.get("reason") == "SyncFailed":
        return f"{refusal} because it failed sync: {message}"
    if healthy <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    if message:
        return f"{refusal} ({condition.get('reason', '')}): {message}"
    return refusal


def _still_processed(name: str) -> APIError:
    """429 for a budget whose controller has not yet observed its latest generation."""
    return _refused(f"The disruption budget {name} is still being processed by the server.", 10)


def _refused(why: str, retry_after: int) -> APIError:
    error = too_many_requests(_VIOLATION, retry_after)
    error.details = {**(error.details or {}), "causes": [{"reason": "DisruptionBudget", "message": why}]}
    return error
