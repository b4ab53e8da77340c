"""Policies of a Job: podFailurePolicy decides about failed pods, successPolicy about completed indexes."""

from __future__ import annotations

from typing import NamedTuple

from kubist.cluster.control.workloads.jobindexes import Intervals, parse_indexes
from kubist.model.meta.object import Object


class Verdict(NamedTuple):
    """Result of a podFailurePolicy for one failed pod."""

    counts: bool = True
    """Whether the failure counts towards the back-off limits."""
    fails_index: bool = False
    message: str = ""
    """Message of the Failed condition if the failure fails the Job."""


COUNTED = Verdict()


def judge(job: Object, pod: Object) -> Verdict:
    """Applies the first matching rule of the Job's podFailurePolicy to a failed pod."""
    for number, rule in enumerate((job["spec"].get("podFailurePolicy") or {}).get("rules") or ()):
        why = _match(rule, pod)
        if why:
            action = rule["action"]
            if action == "FailJob":
                return Verdict(message=f"{why} matching FailJob rule at index {number}")
            return Verdict(counts=action != "Ignore", fails_index=action == "FailIndex")
    return COUNTED


def _match(rule: Object, pod: Object) -> str:
    """Reason for which a rule matches a pod. Empty if it does not match."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    shown = f"{metadata['namespace']}/{metadata['name']}"
    if "onExitCodes" in rule:
        for part in ("containerStatuses", "initContainerStatuses"):
            for held in status.get(part) or ():
                if _matches_exit_code(rule["onExitCodes"], held):
                    code = held["state"]["terminated"]["exitCode"]
                    return f"Container {held['name']} for pod {shown} failed with exit code {code}"
        return ""
    wanted = [
        (pattern["type"], pattern.get("status", "True")) for pattern in rule.get("onPodConditions") or ()
    ]
    for condition in status.get("conditions") or ():
        if (condition["type"], condition["status"]) in wanted:
            return f"Pod {shown} has condition {condition['type']}"
    return ""


def _matches_exit_code(requirement: Object, held: Object) -> bool:
    ended = (held.get("state") or {}).get("terminated")
    if not ended or requirement.get("containerName") not in (None, held["name"]):
        return False
    code = ended.get("exitCode", 0)
    is_listed = code in requirement["values"]
    return bool(code) and is_listed == (requirement["operator"] == "In")


def met_success_rule(job: Object, succeeded: Intervals) -> int | None:
    """Number of the first rule of the Job's successPolicy that the completed indexes meet."""
    if not succeeded.pairs:
        return None
    for number, rule in enumerate((job["spec"].get("successPolicy") or {}).get("rules") or ()):
        count = rule.get("succeededCount")
        if "succeededIndexes" in rule:
            wanted = parse_indexes(rule["succeededIndexes"], job["spec"]["completions"])
            if not wanted.pairs:
                continue
            found = wanted.overlap(succeeded)
            if found == len(wanted) or (count is not None and found >= count):
                return number
        elif count is not None and len(succeeded) >= count:
            return number
    return None
