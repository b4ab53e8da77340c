"""Status of a simulated pod: running, changed while it runs, or succeeded."""

from __future__ import annotations

from kubist.meta import times
from kubist.meta.conditions import find, set_condition
from kubist.meta.object import Object

NODE_ADDRESS = "192.0.2.1"


def running(pod: Object, address: str) -> Object:
    """All containers run and are ready."""
    now, spec, status = times.now(), pod["spec"], pod["status"]
    status |= {"phase": "Running", "hostIP": NODE_ADDRESS, "hostIPs": [{"ip": NODE_ADDRESS}]}
    status |= {"podIP": address, "podIPs": [{"ip": address}], "startTime": status.get("startTime", now)}
    running = {"running": {"startedAt": now}}
    done = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}}
    status["containerStatuses"] = [container_status(c, running, ready=True) for c in spec["containers"]]
    if spec.get("initContainers"):
        status["initContainerStatuses"] = [
            container_status(c, running if c.get("restartPolicy") == "Always" else done, ready=True)
            for c in spec["initContainers"]
        ]
    return _conditions(pod, "True", now)


def is_outdated(pod: Object) -> bool:
    """Whether the status of a running pod does not reflect its spec or its readiness gates yet."""
    metadata, status = pod["metadata"], pod["status"]
    if status.get("observedGeneration") != metadata.get("generation"):
        return True
    if not pod["spec"].get("readinessGates"):
        return False
    ready = find(status.get("conditions"), "Ready") or {}
    return bool(ready.get("status") != _ready_by_gates(pod))


def observed(pod: Object, _address: str) -> Object:
    """Updates a running pod. A status that a client wrote to simulate a failure is kept."""
    images = {container["name"]: container.get("image", "") for container in pod["spec"]["containers"]}
    for held in pod["status"].get("containerStatuses") or ():
        image = images.get(held["name"], held["image"])
        if held["image"] != image:
            held |= {"image": image, "imageID": f"simulated://{image}"}
    if pod["spec"].get("readinessGates"):
        ready = {"type": "Ready", "status": _ready_by_gates(pod)}
        set_condition(pod["status"]["conditions"], ready, times.now())
    return _note_generation(pod)


def _ready_by_gates(pod: Object) -> str:
    """Status of the condition Ready: ContainersReady and all readiness gates must be true."""
    conditions = pod["status"].get("conditions")
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or ()]
    wanted = ("ContainersReady", *gates)
    true = all((find(conditions, kind) or {}).get("status") == "True" for kind in wanted)
    return "True" if true else "False"


def _note_generation(pod: Object) -> Object:
    generation = pod["metadata"].get("generation")
    if generation:
        pod["status"]["observedGeneration"] = generation
        for condition in pod["status"].get("conditions") or ():
            condition["observedGeneration"] = generation
    return pod


def succeeded(pod: Object, _address: str) -> Object | None:
    """All containers of a running pod have ended without an error. None if the pod does not run."""
    now, status = times.now(), pod["status"]
    if status.get("phase") != "Running":
        return None
    status["phase"] = "Succeeded"
    for held in status.get("containerStatuses") or ():
        started = (held["state"].get("running") or {}).get("startedAt", now)
        ended = {"exitCode": 0, "reason": "Completed", "startedAt": started, "finishedAt": now}
        held |= {"state": {"terminated": ended}, "ready": False, "started": False}
    return _conditions(pod, "False", now, reason="PodCompleted")


def _conditions(pod: Object, ready: str, now: str, reason: str = "") -> Object:
    conditions = pod["status"].setdefault("conditions", [])
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or ()]
    open_ = all((find(conditions, gate) or {}).get("status") == "True" for gate in gates)
    states = {
        "PodReadyToStartContainers": ready,
        "Initialized": "True",
        "Ready": ready if open_ else "False",
        "ContainersReady": ready,
        "PodScheduled": "True",
    }
    for kind, state in states.items():
        condition = {"type": kind, "status": state}
        if reason and kind != "PodScheduled":
            condition["reason"] = reason
        set_condition(conditions, condition, now)
    return _note_generation(pod)


def container_status(container: Object, state: Object, *, ready: bool) -> Object:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": f"simulated://{container.get('image', '')}",
        "containerID": f"simulated://{container['name']}",
        "ready": ready,
        "started": "running" in state,
        "restartCount": 0,
        "state": state,
        "lastState": {},
    }
