"""Transitions of one simulated container: it starts, ends, waits for its back-off or its image, and is stopped."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from kubist.base.caching import bounded_cache
from kubist.cluster.simulation.commands import Run, termination_message
from kubist.cluster.simulation.containers import (
    CALM_SECONDS,
    PodEvent,
    back_off,
    crash_loop_message,
    ended_status,
    new_status,
    probe_failure,
    pull_error,
    root_problem,
    shown_pod,
    start_events,
    started_status,
    stop_code,
    waiting_status,
)
from kubist.cluster.simulation.outcomes import ANNOTATION, Outcome, outcome_of, own_outcome_of
from kubist.cluster.simulation.pod_needs import Missing
from kubist.cluster.simulation.pod_resize import infeasible, is_resized, needs_restart, resized_status
from kubist.cluster.simulation.pod_status import RESTARTING_ALL, matching_rule, restarts
from kubist.model.meta.conditions import find
from kubist.model.meta.object import Object
from kubist.model.meta.times import format_time, parse_time

RESTART_ALL_SECONDS = 1.0
"""Time until all containers start again because of a restart rule. It has no back-off."""
PULL_ERROR_SECONDS = 1.0
"""Time for which ErrImagePull is shown before ImagePullBackOff."""


@dataclass(slots=True)
class Memory:
    """State of a pod that its status does not contain: fractions of seconds, and back-offs, which a kubelet also loses
    when it restarts."""

    moments: dict[str, float] = field(default_factory=dict)
    """Exact times, by `pod`, `stop`, `restart` or a slash and the name of a container."""
    calm: dict[str, int] = field(default_factory=dict)
    """Restarts of a container at the time of its last long run."""
    pulls: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Failed pulls of a container's image, and the time of the last one."""
    runs: dict[tuple[str, int], Run | None] = field(default_factory=dict)
    """Runs of containers by name and number of earlier runs."""
    said: set[str] = field(default_factory=set)
    """Events that were recorded and are not repeated."""


@dataclass(slots=True)
class Surroundings:
    """Facts from outside a pod on which its transitions depend."""

    host_addresses: list[str]
    addresses: Callable[[], list[str]]
    """Assigns addresses to the pod."""
    run_of: Callable[[Object, int], Run | None]
    """Run of a container by its command, and the number of earlier runs."""
    delay: float = 0.0
    """Seconds until containers start, and that a container of a Job runs."""
    is_of_job: bool = False
    missing: Missing | None = None
    allocatable: Object | None = None
    """Resources of the node."""


class ContainerMachine:
    """Containers of a pod in one step."""

    def __init__(self, pod: Object, around: Surroundings, memory: Memory, now: float) -> None:
        self.pod, self.spec, self.old = pod, pod["spec"], pod["status"]
        self.around, self.memory, self.now = around, memory, now
        self.stamp = format_time(int(now))
        self.events: list[PodEvent] = []
        self.wake = math.inf
        ready = find(self.old.get("conditions"), "PodReadyToStartContainers")
        self.has_sandbox = ready is not None and ready.get("status") == "True"
        self.statuses: dict[str, Object] = {
            status["name"]: status
            for part in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
            for status in self.old.get(part) or ()
        }
        self.is_resized = False
        self.resize_problem: str | None = None
        """Reason why a resize is impossible. None if no resize was seen yet."""

    def container(self, container: Object, kind: str) -> None:
        """One transition of a container. `kind` is regular, init, sidecar or ephemeral."""
        name = container["name"]
        status = self.statuses.get(name)
        state = (status or {}).get("state") or {}
        if status is not None and "running" in state:
            self.running(container, kind, status)
        elif status is not None and "terminated" in state:
            self.terminated(container, kind, status)
        else:
            self.start(container, kind, status)

    def start(self, container: Object, kind: str, status: Object | None) -> None:
        """Starts a container, or lets it wait."""
        name, path = container["name"], self.path(container)
        if status is not None and self.is_in_back_off(container, status):
            return
        blank = status or new_status(container, "ContainerCreating")
        outcome = self.outcome(container, kind)
        is_scripted = outcome.runs or outcome.exit is not None or outcome.start is not None
        image = container.get("image", "")
        if not is_scripted and image and (why := name_problem(image)):
            self.statuses[name] = self.refuse_image(container, blank, why)
            return
        if outcome.start == "ErrImagePull" or (not is_scripted and is_missing(image)):
            self.statuses[name] = self.pull(container, blank, path)
            return
        problem = self.around.missing.containers.get(name, "") if self.around.missing is not None else ""
        problem = problem or root_problem(self.pod, container)
        if outcome.start is not None:
            problem = f"the annotation {ANNOTATION} says so"
        if problem:
            pulled = start_events(container, path)[:-2]
            self.say(f"{name}/{problem}", *pulled, PodEvent("Warning", "Failed", f"Error: {problem}", path))
            self.statuses[name] = waiting_status(blank, "CreateContainerConfigError", problem)
            return
        self.memory.pulls.pop(name, None)
        new = started_status(self.pod, container, status, self.stamp)
        if kind == "ephemeral":
            del new["started"]
        self.memory.moments[f"/{name}"] = self.now
        self.statuses[name] = new
        self.events += start_events(container, path)
        end = self.end_of(container, kind, new["restartCount"])
        if kind == "init" and end is not None and not end.seconds and not end.code:
            self.statuses[name] = self.exited(container, kind, new, end, self.now)
            return
        if kind in ("regular", "sidecar") and (end is None or end.seconds):
            # A run that ends at once is never ready, so that rollouts do not go on with containers that crash.
            self.statuses[name] = {**new, "ready": self.is_ready(container, kind, self.now)}
        if end is not None:
            self.wake = min(self.wake, self.now + end.seconds)

    def running(self, container: Object, kind: str, status: Object) -> None:
        name = container["name"]
        started = self.moment(f"/{name}", status["state"]["running"].get("startedAt"))
        if status.get("image") != container.get("image", "") and kind in ("regular", "sidecar"):
            self.replace(container, kind, status, f"Container {name} definition changed, will be restarted")
            return
        end = self.end_of(container, kind, status["restartCount"])
        if end is not None and self.due(started + end.seconds):
            self.statuses[name] = self.exited(container, kind, status, end, started + end.seconds)
            if kind != "ephemeral":
                self.wake = self.now
            return
        if kind in ("regular", "sidecar"):
            if is_resized(container, status) and self.may_resize():
                self.is_resized = True
                if needs_restart(container, status):
                    self.replace(container, kind, status, f"Container {name} resize requires restart")
                    return
                status = self.statuses[name] = resized_status(container, status)
            ready = self.is_ready(container, kind, started)
            if status.get("ready") != ready or not status.get("started"):
                self.statuses[name] = {**status, "ready": ready, "started": True}

    def may_resize(self) -> bool:
        if self.resize_problem is None:
            self.resize_problem = infeasible(self.pod, self.around.allocatable)
        return not self.resize_problem

    def replace(self, container: Object, kind: str, status: Object, message: str) -> None:
        """Stops a running container and starts it again without back-off."""
        self.killing(container, message)
        ended = ended_status(status, stop_code(self.spec), "", "", self.stamp)
        self.memory.calm[container["name"]] = status["restartCount"]
        self.start(container, kind, ended)

    def exited(self, container: Object, kind: str, old_status: Object, end: Run, finished: float) -> Object:
        message = termination_message(container, end)
        status = ended_status(old_status, end.code, end.reason, message, format_time(int(finished)))
        if kind == "init" and not end.code:
            status["ready"] = True
        return status

    def terminated(self, container: Object, kind: str, status: Object) -> None:
        code = status["state"]["terminated"]["exitCode"]
        if kind == "ephemeral" or (kind == "init" and not code):
            return
        if kind == "sidecar" and self.is_finished():
            return
        if matching_rule(container, code) == "RestartAllContainers":
            return
        if restarts(container, self.spec, code):
            self.start(container, kind, status)

    def is_finished(self) -> bool:
        """Whether all regular containers have ended for good."""
        for container in self.spec["containers"]:
            ended = self.state(container["name"]).get("terminated")
            if ended is None or restarts(container, self.spec, ended["exitCode"]):
                return False
        return True

    def is_in_back_off(self, container: Object, status: Object) -> bool:
        """Whether a container that ended must wait before it starts again."""
        name = container["name"]
        state = status.get("state") or {}
        ended = state.get("terminated") or (status.get("lastState") or {}).get("terminated")
        if ended is None:
            return False
        if ended.get("reason") == RESTARTING_ALL:
            return not self.due(self.moment("restart", None) + RESTART_ALL_SECONDS)
        finished = parse_time(ended["finishedAt"]) if ended.get("finishedAt") else int(self.now)
        if ended.get("startedAt") and finished - parse_time(ended["startedAt"]) > CALM_SECONDS:
            self.memory.calm[name] = status["restartCount"]
        seconds = back_off(status["restartCount"] - self.memory.calm.get(name, 0))
        if not seconds or self.due(finished + seconds):
            return False
        if (state.get("waiting") or {}).get("reason") != "CrashLoopBackOff":
            message = f"Back-off restarting failed container {name} in pod {shown_pod(self.pod)}"
            self.events.append(PodEvent("Warning", "BackOff", message, self.path(container)))
            text = crash_loop_message(self.pod, name, seconds)
            self.statuses[name] = waiting_status(status, "CrashLoopBackOff", text)
        return True

    def refuse_image(self, container: Object, status: Object, why: str) -> Object:
        """Status of a container whose image has a malformed name."""
        name, path, image = container["name"], self.path(container), container["image"]
        text = f'"{image}"'
        message = f"Failed to apply default image tag {text}: couldn't parse image name {text}: {why}"
        self.say(
            f"{name}/{image}",
            PodEvent("Warning", "InspectFailed", message, path),
            PodEvent("Warning", "Failed", "Error: InvalidImageName", path),
        )
        return waiting_status(status, "InvalidImageName", message)

    def pull(self, container: Object, status: Object, path: str) -> Object:
        """Status of a container whose image cannot be pulled."""
        name, image = container["name"], container.get("image", "")
        if container.get("imagePullPolicy") == "Never":
            message = f'Container image "{image}" is not present with pull policy of Never'
            self.say(
                f"{name}/never",
                PodEvent("Warning", "ErrImageNeverPull", message, path),
                PodEvent("Warning", "Failed", "Error: ErrImageNeverPull", path),
            )
            return waiting_status(status, "ErrImageNeverPull", message)
        failures, last = self.memory.pulls.get(name, (0, 0.0))
        error = pull_error(image)
        if not failures or self.due(last + back_off(failures)):
            self.memory.pulls[name] = (failures + 1, self.now)
            self.events += [
                PodEvent("Normal", "Pulling", f'Pulling image "{image}"', path),
                PodEvent("Warning", "Failed", f'Failed to pull image "{image}": {error}', path),
                PodEvent("Warning", "Failed", "Error: ErrImagePull", path),
            ]
            self.wake = min(self.wake, self.now + PULL_ERROR_SECONDS)
            return waiting_status(status, "ErrImagePull", error)
        if not self.due(last + PULL_ERROR_SECONDS):
            return status
        if (status["state"].get("waiting") or {}).get("reason") != "ImagePullBackOff":
            self.events += [
                PodEvent("Normal", "BackOff", f'Back-off pulling image "{image}"', path),
                PodEvent("Warning", "Failed", "Error: ImagePullBackOff", path),
            ]
        return waiting_status(
            status, "ImagePullBackOff", f'Back-off pulling image "{image}": ErrImagePull: {error}'
        )

    def end_of(self, container: Object, kind: str, attempt: int) -> Run | None:
        """End of a run. None if the container runs until it is stopped."""
        outcome = self.outcome(container, kind)
        end = outcome.exit
        if end is not None and not (end.times and attempt >= end.times):
            return Run(end.after, end.code, reason=end.reason)
        if outcome.runs:
            return None
        run = self.around.run_of(container, attempt)
        if run is not None:
            return None if math.isinf(run.seconds) else run
        if kind == "init":
            return Run()
        return Run(self.around.delay) if kind == "regular" and self.around.is_of_job else None

    def outcome(self, container: Object, kind: str) -> Outcome:
        read = outcome_of if kind == "regular" else own_outcome_of
        return read(self.pod, container["name"])

    def is_ready(self, container: Object, kind: str, started: float) -> bool:
        after = self.outcome(container, kind).ready_after
        if after is None or self.due(started + after):
            return True
        if probe := container.get("readinessProbe"):
            event = PodEvent("Warning", "Unhealthy", probe_failure(probe), self.path(container))
            self.say(f"{container['name']}/unhealthy", event)
        return False

    def kill(self, container: Object, code: int) -> None:
        self.killing(container, f"Stopping container {container['name']}")
        status = self.statuses[container["name"]]
        self.statuses[container["name"]] = ended_status(status, code, "", "", self.stamp)

    def kill_all(self, code: int) -> None:
        for part in ("containers", "initContainers", "ephemeralContainers"):
            for container in self.spec.get(part) or ():
                if "running" in self.state(container["name"]):
                    self.kill(container, code)

    def killing(self, container: Object, message: str) -> None:
        self.events.append(PodEvent("Normal", "Killing", message, self.path(container)))

    def state(self, name: str) -> Object:
        return (self.statuses.get(name) or {}).get("state") or {}

    def path(self, container: Object) -> str:
        name = container["name"]
        for part in ("initContainers", "ephemeralContainers"):
            if any(other["name"] == name for other in self.spec.get(part) or ()):
                return f"spec.{part}{{{name}}}"
        return f"spec.containers{{{name}}}"

    def say(self, key: str, *events: PodEvent) -> None:
        """Records Events, unless they were recorded before."""
        if key not in self.memory.said:
            self.memory.said.add(key)
            self.events += events

    def due(self, when: float) -> bool:
        """Whether a time has come. Otherwise the pod wakes up at that time."""
        if when <= self.now:
            return True
        self.wake = min(self.wake, when)
        return False

    def moment(self, key: str, stated: str | None) -> float:
        """Exact time of an event that the status states in whole seconds. If it is not known, the time is at most one
        second too late."""
        if key not in self.memory.moments:
            known = self.now if stated is None else min(float(parse_time(stated)) + 1, self.now)
            self.memory.moments[key] = known
        return self.memory.moments[key]


# Images that cannot be pulled. No registry is contacted: the name or tag marks an image as missing, or the name is
# malformed

_is_missing = re.compile(
    "([a-z0-9._-]*[._-])?(non-?existent|does-?not-?exist|no-?such-?(image|tag|version))([._-].*)?"
).fullmatch

_component = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_is_host = re.compile(rf"(?:{_label}(?:\.{_label})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?", re.ASCII).fullmatch
_is_component = re.compile(_component).fullmatch
_is_tag = re.compile(r"\w[\w.-]{0,127}", re.ASCII).fullmatch
_is_digest = re.compile(
    r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}", re.ASCII
).fullmatch
_is_identifier = re.compile("[a-f0-9]{64}").fullmatch
_LONGEST_PATH = 255
_BAD_FORMAT = "invalid reference format"


@bounded_cache(entries=1024, key_length=512)
def is_missing(image: str) -> bool:
    """Whether the last part of an image's name, or its tag, is a word such as `non-existent`, or its tag is `404`."""
    name, _, tag = image.partition("@")[0].rpartition("/")[2].partition(":")
    return tag == "404" or any(_is_missing(part.lower()) for part in (name, tag))


@bounded_cache(entries=1024, key_length=512)
def name_problem(image: str) -> str:
    """Reason why a kubelet cannot parse the name of an image. Empty if the name is well-formed."""
    if _is_identifier(image):
        return f"invalid repository name ({image}), cannot specify 64-byte hexadecimal strings"
    host, path = _split_host(image)
    repository = path.partition(":")[0]
    if repository != repository.lower():
        return f"{_BAD_FORMAT}: repository name ({repository}) must be lowercase"
    rest, at, digest = path.partition("@")
    repository, colon, tag = rest.partition(":")
    if (
        not _is_host(host)
        or not all(_is_component(part) for part in repository.split("/"))
        or (colon and not _is_tag(tag))
        or (at and not _is_digest(digest))
    ):
        return _BAD_FORMAT
    if len(repository) > _LONGEST_PATH:
        return f"repository name must not be more than {_LONGEST_PATH} characters"
    return ""


def _split_host(image: str) -> tuple[str, str]:
    """Registry and the rest of an image's name. Names without a registry are those of Docker Hub."""
    first, slash, rest = image.partition("/")
    if slash and (first == "localhost" or "." in first or ":" in first or first != first.lower()):
        return first, rest
    return "docker.io", image if slash else f"library/{image}"
