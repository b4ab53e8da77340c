"""Disruptions taken from a PodDisruptionBudget by evictions."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from kubist.model.meta.conditions import find, set_condition
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError, forbidden, too_many_requests
from kubist.model.patch import apply as ssa
from kubist.model.schema.catalog import schema_for

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

_MAX_DISRUPTED_PODS = 2000
_VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget."


async def take_disruption(ctx: Context, budget: Object, pod_name: str) -> None:
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
        raise still_processed(name)
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


def still_processed(name: str) -> APIError:
    """429 for a budget whose controller has not yet observed its latest generation."""
    return _refused(f"The disruption budget {name} is still being processed by the server.", 10)


def _refused(why: str, retry_after: int) -> APIError:
    error = too_many_requests(_VIOLATION, retry_after)
    error.details = {**(error.details or {}), "causes": [{"reason": "DisruptionBudget", "message": why}]}
    return error
