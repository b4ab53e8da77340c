"""Columns of pods, with the computed status column."""

from __future__ import annotations

from kubist.api.tables.ages import Cell, since
from kubist.api.tables.cells import NONE, is_true
from kubist.api.tables.columns import AGE, NAME, Column, Table, part, wide
from kubist.model.meta.object import Object
from kubist.model.meta.times import parse_time

_ENDED = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def conditions(pod: Object) -> list[Object]:
    phase = part(pod, "status").get("phase", "")
    if phase not in _ENDED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _ENDED[phase]}]


class Progress:
    """Summary of the container statuses of a pod."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.total = 0
        self.ready = 0
        self.restarts = 0
        self.last_restart = ""

    def count(self, status: Object) -> None:
        """Adds the restarts of a container."""
        self.restarts += status.get("restartCount", 0)
        finished = part(status, "lastState", "terminated").get("finishedAt")
        if finished and (not self.last_restart or parse_time(finished) > parse_time(self.last_restart)):
            self.last_restart = finished


def _progress(pod: Object) -> Progress:
    spec, status = pod["spec"], part(pod, "status")
    inits = {container["name"]: container for container in spec.get("initContainers") or ()}
    sidecars = {name for name, container in inits.items() if container.get("restartPolicy") == "Always"}
    progress = Progress(_first_reason(status))
    of_sidecars = Progress("")
    initializing = _initialize(spec, status, sidecars, progress, of_sidecars)
    if not initializing or is_true(status.get("conditions"), "Initialized"):
        progress.restarts, progress.last_restart = of_sidecars.restarts, of_sidecars.last_restart
        _run(status, progress)
    progress.total = len(spec.get("containers") or ()) + sum(
        container.get("restartPolicy") == "Always" for container in spec.get("initContainers") or ()
    )
    progress.reason = _terminating(pod, status) or progress.reason
    return progress


def _first_reason(status: Object) -> str:
    """Status before any container status overrides it."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return str(status.get("reason") or status.get("phase", ""))


def _initialize(
    spec: Object, status: Object, sidecars: set[str], progress: Progress, of_sidecars: Progress
) -> bool:
    """Adds the init containers up to the first unfinished one. Returns whether one is unfinished."""
    for index, container in enumerate(status.get("initContainerStatuses") or ()):
        progress.count(container)
        sidecar = container.get("name") in sidecars
        if sidecar:
            of_sidecars.count(container)
        state = container.get("state") or {}
        terminated, waiting = state.get("terminated"), part(state, "waiting").get("reason", "")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if sidecar and container.get("started"):
            progress.ready += bool(container.get("ready"))
            continue
        if terminated is not None:
            progress.reason = "Init:" + _end(terminated)
        elif waiting and waiting != "PodInitializing":
            progress.reason = "Init:" + waiting
        else:
            progress.reason = f"Init:{index}/{len(spec.get('initContainers') or ())}"
        return True
    return False


def _end(terminated: Object) -> str:
    """Reason why a container terminated."""
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _run(status: Object, progress: Progress) -> None:
    """Adds the containers in reverse order, so that the first container decides the status."""
    running, failure = False, ""
    for container in reversed(status.get("containerStatuses") or ()):
        progress.count(container)
        state = container.get("state") or {}
        terminated = state.get("terminated")
        if part(state, "waiting").get("reason"):
            progress.reason = state["waiting"]["reason"]
        elif terminated is not None:
            progress.reason = _end(terminated)
            if terminated.get("exitCode"):
                failure = progress.reason
        elif container.get("ready") and state.get("running") is not None:
            running = True
            progress.ready += 1
    if progress.reason == "Completed":
        if running and is_true_anywhere(status.get("conditions") or [], "Ready"):
            progress.reason = "Running"
        elif failure:
            progress.reason = failure
        elif running:
            progress.reason = "NotReady"


def is_true_anywhere(conditions: list[Object], type: str) -> bool:
    return any(each.get("type") == type and each.get("status") == "True" for each in conditions)


def _terminating(pod: Object, status: Object) -> str:
    if "deletionTimestamp" not in pod["metadata"]:
        return ""
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return "" if status.get("phase") in _ENDED else "Terminating"


def _restarts(progress: Progress) -> Cell:
    if not progress.restarts or not progress.last_restart:
        return str(progress.restarts)
    age = since(progress.last_restart)
    if isinstance(age, str):
        return str(progress.restarts)
    return age.templated(f"{progress.restarts} (%s ago)")


def _ip(pod: Object) -> str:
    ips = part(pod, "status").get("podIPs")
    return ips[0].get("ip") or NONE if ips else NONE


def _gates(pod: Object) -> str:
    gates = pod["spec"].get("readinessGates")
    if not gates:
        return NONE
    conditions = part(pod, "status").get("conditions")
    met = sum(is_true(conditions, gate.get("conditionType", "")) for gate in gates)
    return f"{met}/{len(gates)}"


PODS = Table(
    NAME,
    Column(
        "Ready",
        "Number of ready containers and of all containers.",
        of=_progress,
        cell=lambda progress: f"{progress.ready}/{progress.total}",
    ),
    Column("Status", "State of the pod.", of=_progress, cell=lambda progress: progress.reason),
    Column(
        "Restarts",
        "Number of container restarts, and the time since the last one.",
        of=_progress,
        cell=_restarts,
    ),
    AGE,
    wide("IP", "Address of the pod.", cell=_ip),
    wide("Node", "Node of the pod.", path="spec.nodeName", absent=NONE),
    wide(
        "Nominated Node",
        "Node on which the scheduler preempts pods for this one.",
        path="status.nominatedNodeName",
        absent=NONE,
    ),
    wide(
        "Readiness Gates", "Number of readiness gates that are met, and of all readiness gates.", cell=_gates
    ),
    conditions=conditions,
)
