"""Status of a simulated pod from the states of its containers: phase and conditions, as the kubelet computes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubist.model.meta.conditions import find
from kubist.model.meta.object import Object

NODE_ADDRESS = "192.0.2.1"
KUBELET_CONDITIONS = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
    "AllContainersRestarting",
    "PodResizeInProgress",
    "PodResizePending",
)
"""Types of conditions that only the kubelet sets."""
TERMINAL = ("Succeeded", "Failed")
RESTARTING_ALL = "RestartingAllContainers"


def is_sidecar(container: Object) -> bool:
    """Whether an init container is a sidecar, which keeps running."""
    return container.get("restartPolicy") == "Always"


def matching_rule(container: Object, code: int) -> str:
    """Action of the first restart rule that matches an exit code. Empty if none does."""
    for rule in container.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        listed = code in (codes.get("values") or ())
        if codes and listed == (codes.get("operator") == "In"):
            return str(rule.get("action", ""))
    return ""


def restarts(container: Object, spec: Object, code: int) -> bool:
    """Whether a container that ended with this code is started again."""
    policy = container.get("restartPolicy")
    if policy is not None and matching_rule(container, code) in ("Restart", "RestartAllContainers"):
        return True
    policy = policy or spec.get("restartPolicy", "Always")
    return bool(code) if policy == "OnFailure" else policy != "Never"


def _ended(status: Object) -> Object | None:
    """Termination that counts for the phase: the present one, or the last one of a waiting container."""
    state = status.get("state") or {}
    if "terminated" in state:
        return state["terminated"]  # type: ignore[no-any-return]
    return (status.get("lastState") or {}).get("terminated") if "waiting" in state else None


def has_run(status: Object) -> bool:
    """Whether a container runs, or ran before."""
    return "waiting" not in (status.get("state") or {}) or "terminated" in (status.get("lastState") or {})


def was_initialized(spec: Object, statuses: dict[str, Object]) -> bool:
    """Whether regular containers of a pod could start."""
    listed = spec.get("initContainers")
    if not listed or any(
        has_run(statuses.get(each["name"]) or {"state": {"waiting": {}}}) for each in spec["containers"]
    ):
        return True
    last = statuses.get(listed[-1]["name"]) or {}
    if is_sidecar(listed[-1]):
        return "running" in (last.get("state") or {})
    return (_ended(last) or {}).get("exitCode") == 0


def _is_restartable(container: Object, spec: Object, ended: Object) -> bool:
    return ended.get("reason") == RESTARTING_ALL or restarts(container, spec, ended["exitCode"])


def phase_of(spec: Object, statuses: dict[str, Object], *, is_terminal: bool = False) -> str:
    """Phase by the states of the containers. `is_terminal`: containers are not started again."""
    pending_sidecars, waiting, running, unknown = 0, 0, 0, 0
    for container in spec.get("initContainers") or ():
        status = statuses.get(container["name"]) or {}
        state = status.get("state") or {}
        if is_sidecar(container):
            if "running" in state:
                pending_sidecars += not status.get("started")
                running += 1
            elif not _ended(status):
                pending_sidecars += 1
                waiting += 1
            continue
        ended = _ended(status)
        if ended is None:
            return "Pending"
        if ended["exitCode"] and not _is_restartable(container, spec, ended):
            return "Failed"
    stopped, final, succeeded, has_started = 0, 0, 0, False
    for container in spec["containers"]:
        status = statuses.get(container["name"]) or {}
        ended = _ended(status)
        if "running" in (status.get("state") or {}):
            running += 1
            has_started = True
        elif ended is not None:
            stopped += 1
            has_started = True
            final += not _is_restartable(container, spec, ended)
            succeeded += ended["exitCode"] == 0 and "terminated" in status["state"]
        elif status:
            waiting += 1
        else:
            unknown += 1
    if (pending_sidecars and not has_started) or waiting or unknown:
        return "Pending"
    if running:
        return "Running"
    if not is_terminal and stopped != final:
        return "Running"
    return "Succeeded" if stopped == succeeded else "Failed"


def conditions_of(
    pod: Object, status: Object, added: list[Object], *, has_sandbox: bool, stamp: str
) -> list[Object]:
    """Conditions in the kubelet's order: those of others, `added` ones, then its own. `stamp` is the current time."""
    old = pod["status"].get("conditions") or []
    spec, generation = pod["spec"], pod["metadata"].get("generation")
    replaced = (*KUBELET_CONDITIONS, *(condition["type"] for condition in added))
    conditions = [condition for condition in old if condition["type"] not in replaced] + added
    statuses = {
        entry["name"]: entry
        for part in ("initContainerStatuses", "containerStatuses")
        for entry in status.get(part) or ()
    }
    containers_ready = _containers_ready(spec, statuses, status["phase"])
    own = [
        ("PodReadyToStartContainers", ("True" if has_sandbox else "False", "", "")),
        ("Initialized", _initialized(spec, statuses, status["phase"], old)),
        ("Ready", _ready(spec, conditions, containers_ready)),
        ("ContainersReady", containers_ready),
        ("PodScheduled", ("True", "", "")),
    ]
    if any(
        rule.get("action") == "RestartAllContainers"
        for part in ("initContainers", "containers")
        for container in spec.get(part) or ()
        for rule in container.get("restartPolicyRules") or ()
    ):
        own.append(("AllContainersRestarting", _all_restarting(statuses, status["phase"])))
    by_type = {condition["type"]: condition for condition in old}
    for kind, (state, reason, message) in own:
        before = by_type.get(kind) or {}
        same = before.get("status") == state and "lastTransitionTime" in before
        condition: Object = {"type": kind}
        if generation:
            condition["observedGeneration"] = generation
        condition["status"] = state
        condition["lastProbeTime"] = None
        condition["lastTransitionTime"] = before["lastTransitionTime"] if same else stamp
        if reason:
            condition["reason"] = reason
        if message:
            condition["message"] = message
        conditions.append(condition)
    return conditions


Verdict = tuple[str, str, str]
"""Status, reason and message of a condition."""


def _containers_ready(spec: Object, statuses: dict[str, Object], phase: str) -> Verdict:
    if phase == "Succeeded":
        return "False", "PodCompleted", ""
    if phase == "Failed":
        return "False", "PodFailed", ""
    unready = [name for name in _serving(spec) if not (statuses.get(name) or {}).get("ready")]
    if unready:
        return "False", "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
    return "True", "", ""


def _serving(spec: Object) -> Iterator[str]:
    """Names of the sidecars and containers."""
    yield from (container["name"] for container in spec.get("initContainers") or () if is_sidecar(container))
    yield from (container["name"] for container in spec["containers"])


def _ready(spec: Object, others: Iterable[Object], containers_ready: Verdict) -> Verdict:
    if containers_ready[0] != "True":
        return containers_ready
    messages = []
    for gate in spec.get("readinessGates") or ():
        kind = gate["conditionType"]
        condition = find(list(others), kind)
        if condition is None:
            messages.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif condition.get("status") != "True":
            state = condition.get("status", "")
            messages.append(f'the status of pod readiness gate "{kind}" is not "True", but {state}')
    if messages:
        return "False", "ReadinessGatesNotReady", ", ".join(messages)
    return "True", "", ""


def _initialized(spec: Object, statuses: dict[str, Object], phase: str, old: list[Object]) -> Verdict:
    containers = spec.get("initContainers")
    if phase == "Succeeded":
        return "True", "PodCompleted", ""
    if not containers or has_started(spec, statuses):
        return "True", "", ""
    incomplete = [
        container["name"]
        for container in containers
        if not (statuses.get(container["name"]) or {}).get("started" if is_sidecar(container) else "ready")
    ]
    if not incomplete or (find(old, "Initialized") or {}).get("status") == "True":
        return "True", "", ""
    message = f"containers with incomplete status: [{' '.join(incomplete)}]"
    return "False", "ContainersNotInitialized", message


def has_started(spec: Object, statuses: dict[str, Object]) -> bool:
    """Whether a regular container runs or has ended."""
    return any(
        "running" in state or "terminated" in state
        for container in spec["containers"]
        if (state := (statuses.get(container["name"]) or {}).get("state") or {})
    )


def _all_restarting(statuses: dict[str, Object], phase: str) -> Verdict:
    if phase in TERMINAL:
        return "False", "PodCompleted" if phase == "Succeeded" else "PodFailed", ""
    restarting = any(
        ((status.get("state") or {}).get("waiting") or {}).get("reason") == RESTARTING_ALL
        for status in statuses.values()
    )
    if restarting:
        return "True", "RestartAllContainersStarted", "container exited with restart policy rule"
    return "False", "", ""
