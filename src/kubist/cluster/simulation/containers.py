"""Container statuses of simulated pods: their fields, the kubelet's messages, and its back-off."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from kubist.model.meta.durations import written
from kubist.model.meta.object import Object

FIRST_BACK_OFF = 10.0
LONGEST_BACK_OFF = 300.0
CALM_SECONDS = 600.0
"""A container that ran longer is restarted without back-off."""
KILLED = 137
TERMINATED = 143
"""Exit code of a program that SIGTERM ends."""


class PodEvent(NamedTuple):
    """Event about a pod, or about one of its containers."""

    type: str
    reason: str
    message: str
    field_path: str = ""


def stop_code(spec: Object) -> int:
    """Exit code of a simulated container that is stopped. A container of a pod that restarts its containers counts as a
    server, which shuts down cleanly; in any other pod the container did not finish its work."""
    return 0 if spec.get("restartPolicy", "Always") == "Always" else TERMINATED


def back_off(failures: int) -> float:
    """Seconds until the next attempt after a number of attempts that failed in a row."""
    if failures <= 0:
        return 0.0
    return min(FIRST_BACK_OFF * 2.0 ** min(failures - 1, 10), LONGEST_BACK_OFF)


def shown_pod(pod: Object) -> str:
    """Name of a pod in the kubelet's messages."""
    metadata = pod["metadata"]
    return f"{metadata['name']}_{metadata.get('namespace', '')}({metadata.get('uid', '')})"


def crash_loop_message(pod: Object, container: str, seconds: float) -> str:
    return f"back-off {written(seconds)} restarting failed container={container} pod={shown_pod(pod)}"


def pull_error(image: str) -> str:
    """Error of containerd for an image that does not exist."""
    full = full_image(image)
    return (
        f'rpc error: code = NotFound desc = failed to pull and unpack image "{full}": '
        f'failed to resolve reference "{full}": {full}: not found'
    )


def full_image(image: str) -> str:
    """Image with registry and tag."""
    first, slash, _ = image.partition("/")
    if not slash:
        image = f"docker.io/library/{image}"
    elif "." not in first and ":" not in first and first != "localhost":
        image = f"docker.io/{image}"
    last = image.rpartition("/")[2]
    return image if ":" in last or "@" in last else f"{image}:latest"


def probe_failure(probe: Object) -> str:
    """Message about a readiness probe that fails."""
    if "httpGet" in probe:
        return "Readiness probe failed: HTTP probe failed with statuscode: 503"
    if "tcpSocket" in probe:
        return (
            f"Readiness probe failed: dial tcp :{probe['tcpSocket'].get('port')}: connect: connection refused"
        )
    if "grpc" in probe:
        return 'Readiness probe failed: service unhealthy (responded with "NOT_SERVING")'
    return "Readiness probe failed: "


def new_status(container: Object, reason: str) -> Object:
    """Status of a container that never ran."""
    status = {
        "name": container["name"],
        "state": {"waiting": {"reason": reason}},
        "lastState": {},
        "ready": False,
        "restartCount": 0,
        "image": container.get("image", ""),
        "imageID": "",
        "started": False,
    }
    if mounts := container.get("volumeMounts"):
        status["volumeMounts"] = [_mount_status(mount) for mount in mounts]
    return status


def _mount_status(mount: Object) -> Object:
    status = {"name": mount["name"], "mountPath": mount["mountPath"]}
    if mount.get("readOnly"):
        status |= {"readOnly": True, "recursiveReadOnly": "Disabled"}
    return status


def started_status(pod: Object, container: Object, old_status: Object | None, stamp: str) -> Object:
    """Status of a container that starts. `old_status` is its status until now."""
    restarts = 0
    last: Object = {}
    if old_status is not None:
        state = old_status.get("state") or {}
        last = state if "terminated" in state else old_status.get("lastState") or {}
        restarts = old_status.get("restartCount", 0) + bool(last)
    image = container.get("image", "")
    resources = container.get("resources") or {}
    status = {
        "name": container["name"],
        "state": {"running": {"startedAt": stamp}},
        "lastState": last,
        "ready": False,
        "restartCount": restarts,
        "image": image,
        "imageID": f"simulated://{image}",
        "containerID": container_id(pod, container["name"], restarts),
        "started": True,
    }
    if resources.get("requests"):
        status["allocatedResources"] = resources["requests"]
    status["resources"] = resources
    if mounts := container.get("volumeMounts"):
        status["volumeMounts"] = [_mount_status(mount) for mount in mounts]
    if user := user_of(pod["spec"], container):
        status["user"] = {"linux": user}
    return status


def container_id(pod: Object, name: str, restarts: int) -> str:
    """Identifier of one run of a container. It always has the same value for the same run."""
    seed = f"{pod['metadata'].get('uid', '')}/{name}/{restarts}".encode()
    return f"simulated://{hashlib.sha256(seed).hexdigest()}"


def root_problem(pod: Object, container: Object) -> str:
    """Reason why a container may not run as root although its runAsUser requires it. Empty if there is none."""
    of_pod = pod["spec"].get("securityContext") or {}
    effective = {**of_pod, **(container.get("securityContext") or {})}
    if not effective.get("runAsNonRoot") or effective.get("runAsUser") != 0:
        return ""
    location = f'(pod: "{shown_pod(pod)}", container: {container["name"]})'
    return f"container's runAsUser breaks non-root policy {location}"


def user_of(spec: Object, container: Object) -> Object | None:
    """User of the processes. The image's own user is not known: root is reported, or none if root is not allowed."""
    of_pod = spec.get("securityContext") or {}
    of_container = container.get("securityContext") or {}
    uid = of_container.get("runAsUser", of_pod.get("runAsUser"))
    if uid is None:
        if of_container.get("runAsNonRoot", of_pod.get("runAsNonRoot")):
            return None
        uid = 0
    gid = of_container.get("runAsGroup", of_pod.get("runAsGroup", 0))
    groups = [gid, *(of_pod.get("supplementalGroups") or ())]
    if "fsGroup" in of_pod:
        groups.append(of_pod["fsGroup"])
    return {"uid": uid, "gid": gid, "supplementalGroups": list(dict.fromkeys(groups))}


def ended_status(status: Object, code: int, reason: str, message: str, stamp: str) -> Object:
    """Status of a running container that ends."""
    started = ((status.get("state") or {}).get("running") or {}).get("startedAt") or stamp
    ended: Object = {"exitCode": code, "reason": reason or ("Error" if code else "Completed")}
    if message:
        ended["message"] = message
    ended |= {"startedAt": min(started, stamp), "finishedAt": stamp}
    if "containerID" in status:
        ended["containerID"] = status["containerID"]
    return {**status, "state": {"terminated": ended}, "ready": False, "started": False}


def waiting_status(status: Object, reason: str, message: str = "") -> Object:
    """Status of a container that waits. A termination becomes its last state."""
    waiting = {"reason": reason, "message": message} if message else {"reason": reason}
    state = status.get("state") or {}
    last = state if "terminated" in state else status.get("lastState") or {}
    return {**status, "state": {"waiting": waiting}, "lastState": last, "ready": False, "started": False}


def start_events(container: Object, path: str) -> list[PodEvent]:
    image = container.get("image", "")
    events = []
    if container.get("imagePullPolicy") == "Always":
        pulled = f'Successfully pulled image "{image}" in 0s (0s including waiting). Image size: 0 bytes.'
        events.append(PodEvent("Normal", "Pulling", f'Pulling image "{image}"', path))
    else:
        pulled = f'Container image "{image}" already present on machine and can be accessed by the pod'
    return [
        *events,
        PodEvent("Normal", "Pulled", pulled, path),
        PodEvent("Normal", "Created", "Container created", path),
        PodEvent("Normal", "Started", "Container started", path),
    ]
