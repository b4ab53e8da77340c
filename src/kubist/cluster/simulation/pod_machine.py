"""State machine of a simulated pod: its next status, Events and wake-up time, from its present status and the time.

`advance` does one step. A container changes its state at most once in a step, so that clients see every state; only
init containers that succeed at once do not show that they run. All functions are pure except for `Memory`, which the
caller keeps between the steps of a pod and may lose.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kubist.api.admission import amounts
from kubist.api.kinds.core.podspec.resources import qos_class
from kubist.api.kinds.shared.pod_conditions import observe_generation
from kubist.cluster.simulation import pod_resize, pod_status
from kubist.cluster.simulation.commands import Run
from kubist.cluster.simulation.container_machine import (
    RESTART_ALL_SECONDS,
    ContainerMachine,
    Memory,
    Surroundings,
)
from kubist.cluster.simulation.containers import (
    KILLED,
    TERMINATED,
    PodEvent,
    ended_status,
    new_status,
    stop_code,
    waiting_status,
)
from kubist.cluster.simulation.outcomes import pod_outcome
from kubist.cluster.simulation.pod_status import RESTARTING_ALL, TERMINAL, is_sidecar, matching_rule, restarts
from kubist.model.meta.object import Object
from kubist.model.meta.times import format_time, parse_time

EVICTED = "The node was low on resource: memory. "
DEADLINE = "Pod was active on the node longer than the specified deadline"
PULL_SECRETS = (
    "Unable to retrieve some image pull secrets ({}); attempting to pull the image may not succeed."
)
LOST: Object = {
    "exitCode": KILLED,
    "reason": "ContainerStatusUnknown",
    "message": "The container could not be located when the pod was terminated",
    "startedAt": None,
    "finishedAt": None,
}
"""Termination of a container that never ran, or that waited, when its pod ended."""
FIELDS = (
    "observedGeneration",
    "phase",
    "conditions",
    "message",
    "reason",
    "nominatedNodeName",
    "hostIP",
    "hostIPs",
    "podIP",
    "podIPs",
    "startTime",
    "initContainerStatuses",
    "containerStatuses",
    "qosClass",
    "ephemeralContainerStatuses",
    "resize",
    "resourceClaimStatuses",
    "extendedResourceClaimStatus",
    "allocatedResources",
    "resources",
)
"""Fields of a status in their order."""
PARTS = (
    ("initContainers", "initContainerStatuses"),
    ("containers", "containerStatuses"),
    ("ephemeralContainers", "ephemeralContainerStatuses"),
)


@dataclass(slots=True)
class Step:
    status: Object | None
    """None if it does not change."""
    events: list[PodEvent]
    wake: float
    """Time of the next step. Infinity: none is needed until something changes."""
    is_stopped: bool = False
    """Whether all containers of a deleted pod have stopped."""


def advance(pod: Object, around: Surroundings, memory: Memory, now: float) -> Step:
    """Next step of a pod that is bound to a node."""
    machine = PodMachine(pod, around, memory, now)
    if pod["status"].get("phase") in TERMINAL:
        return Step(None, [], math.inf, is_stopped="deletionTimestamp" in pod["metadata"])
    if "deletionTimestamp" in pod["metadata"]:
        return machine.stop()
    return machine.advance()


def end_containers(pod: Object, names: list[str], run: Run, now: float) -> Object | None:
    """Status after running containers ended. None if none of them runs."""
    machine = PodMachine(pod, Surroundings([], list, lambda *_: None), Memory(), now)
    ended = [name for name in names if "running" in machine.state(name)]
    if not ended or pod["status"].get("phase") in TERMINAL:
        return None
    for name in ended:
        status = machine.statuses[name]
        machine.statuses[name] = ended_status(status, run.code, run.reason, run.output, machine.stamp)
    return machine.step(pod_status.phase_of(pod["spec"], machine.statuses)).status


class PodMachine(ContainerMachine):
    """One step of a pod."""

    def advance(self) -> Step:
        started = self.moment("pod", self.old.get("startTime"))
        if (ended := self.ended(started)) is not None:
            return ended
        if self.may_start(started):
            self.has_sandbox = True
            if self.initialize():
                for container in self.spec["containers"]:
                    self.container(container, "regular")
                self.finish_sidecars()
            self.start_ephemeral()
            self.restart_all()
        phase = pod_status.phase_of(self.spec, self.statuses)
        if phase == "Failed":
            # An init container failed for good while sidecars run.
            self.kill_all(TERMINATED)
        return self.step(phase)

    def ended(self, started: float) -> Step | None:
        """Step of a pod that is evicted, or that was active for too long."""
        outcome = pod_outcome(self.pod)
        if outcome.evicted_after is not None and self.due(started + outcome.evicted_after):
            self.events.append(PodEvent("Warning", "Evicted", EVICTED))
            self.kill_all(KILLED)
            self.lose_waiting()
            return self.step("Failed", "Evicted", EVICTED)
        limit = self.spec.get("activeDeadlineSeconds")
        if limit is not None and self.due(started + limit):
            self.events.append(PodEvent("Normal", "DeadlineExceeded", DEADLINE))
            self.kill_all(TERMINATED)
            self.lose_waiting()
            return self.step("Failed", "DeadlineExceeded", DEADLINE)
        return None

    def may_start(self, started: float) -> bool:
        """Whether containers may start. Containers without a status get one."""
        reason = "PodInitializing" if self.spec.get("initContainers") else "ContainerCreating"
        for part in ("initContainers", "containers"):
            for container in self.spec.get(part) or ():
                if container["name"] not in self.statuses:
                    self.statuses[container["name"]] = new_status(container, reason)
        if self.has_sandbox:
            return True
        if self.around.delay and not self.due(started + self.around.delay):
            return False
        if self.around.missing is not None and self.around.missing.volumes:
            for message in self.around.missing.volumes:
                self.say(message, PodEvent("Warning", "FailedMount", message))
            return False
        if self.around.missing is not None and (names := self.around.missing.pull_secrets):
            text = PULL_SECRETS.format(", ".join(names))
            self.say("imagePullSecrets", PodEvent("Warning", "FailedToRetrieveImagePullSecret", text))
        return True

    def initialize(self) -> bool:
        """Runs the init containers in order. Returns whether regular containers may start."""
        has_started = pod_status.has_started(self.spec, self.statuses)
        for container in self.spec.get("initContainers") or ():
            name = container["name"]
            if is_sidecar(container):
                self.container(container, "sidecar")
                if not has_started and "running" not in self.state(name):
                    return False
            elif not has_started:
                self.container(container, "init")
                if (self.state(name).get("terminated") or {}).get("exitCode") != 0:
                    return False
        return True

    def finish_sidecars(self) -> None:
        """Stops the sidecars in reverse order after all regular containers have ended."""
        for container in self.spec["containers"]:
            ended = self.state(container["name"]).get("terminated")
            if ended is None or restarts(container, self.spec, ended["exitCode"]):
                return
        for container in reversed(self.spec.get("initContainers") or ()):
            if is_sidecar(container) and "running" in self.state(container["name"]):
                self.kill(container, 0)

    def start_ephemeral(self) -> None:
        for container in self.spec.get("ephemeralContainers") or ():
            self.container(container, "ephemeral")

    def restart_all(self) -> None:
        """Resets all containers after the end of a container whose restart rule requires it."""
        listed = [*(self.spec.get("initContainers") or ()), *self.spec["containers"]]
        ended = (
            ((self.state(container["name"]).get("terminated") or {}).get("exitCode"), container)
            for container in listed
        )
        if not any(
            code is not None and matching_rule(container, code) == "RestartAllContainers"
            for code, container in ended
        ):
            return
        message = "The container is removed because RestartAllContainers in place"
        for container in reversed(listed):
            status = self.statuses[container["name"]]
            if "running" in self.state(container["name"]):
                self.killing(container, "killing")
            if "waiting" not in self.state(container["name"]):
                last = {"terminated": {"exitCode": KILLED, "reason": RESTARTING_ALL, "message": message}}
                status = {**status, "lastState": last, "state": {}, "ready": False, "started": False}
                self.statuses[container["name"]] = waiting_status(status, RESTARTING_ALL, message)
                self.memory.calm[container["name"]] = status["restartCount"]
        self.memory.moments["restart"] = self.now
        self.wake = self.now + RESTART_ALL_SECONDS

    def stop(self) -> Step:
        """Step of a pod that is being deleted: its containers stop, sidecars after the others."""
        metadata = self.pod["metadata"]
        limit = float(parse_time(metadata["deletionTimestamp"]))
        requested = limit - metadata.get("deletionGracePeriodSeconds", 0)
        if "stop" not in self.memory.moments:
            self.memory.moments["stop"] = min(requested + 1, self.now)
        began = self.memory.moments["stop"]
        turn = began
        listed: list[tuple[Object, str]] = [
            (entry, "ephemeral") for entry in self.spec.get("ephemeralContainers") or ()
        ]
        listed += [(entry, "regular") for entry in self.spec["containers"]]
        sidecars = [(entry, "sidecar") for entry in reversed(self.spec.get("initContainers") or ())]
        for container, kind in listed:
            turn = max(turn, self.stop_container(container, kind, began, limit))
        for container, kind in sidecars:
            turn = self.stop_container(container, kind, turn, limit)
        if any("running" in self.state(name) for name in self.statuses):
            return Step(None, self.events, self.wake)
        self.end_back_offs()
        phase = pod_status.phase_of(self.spec, self.statuses, is_terminal=True)
        self.lose_waiting()
        step = self.step(phase if phase in TERMINAL else "Failed")
        step.is_stopped = True
        return step

    def end_back_offs(self) -> None:
        """Containers that wait for their back-off do not start again: their last termination is their state."""
        for name, status in self.statuses.items():
            last = status.get("lastState") or {}
            if "waiting" in self.state(name) and "terminated" in last:
                self.statuses[name] = {**status, "state": last, "lastState": {}}

    def lose_waiting(self) -> None:
        """Gives the waiting containers of a pod that ends the state that a kubelet gives them. Containers of a pod that
        was not initialized, and init containers behind those that started, go on waiting."""
        listed = [
            entry["name"] for entry in self.spec.get("initContainers") or () if entry["name"] in self.statuses
        ]
        begun = [at for at, name in enumerate(listed) if pod_status.has_run(self.statuses[name])]
        lost = listed[: max(begun, default=0) + 1]
        if pod_status.was_initialized(self.spec, self.statuses):
            lost += [entry["name"] for entry in self.spec["containers"] if entry["name"] in self.statuses]
        for name in lost:
            if "waiting" in self.state(name):
                self.statuses[name] = {**self.statuses[name], "state": {"terminated": dict(LOST)}}

    def stop_container(self, container: Object, kind: str, began: float, limit: float) -> float:
        """Stops a running container that got the signal at `began`. Returns the time at which it has stopped."""
        if "running" not in self.state(container["name"]):
            return began
        message = f"Stopping container {container['name']}"
        self.say(f"stop/{container['name']}", PodEvent("Normal", "Killing", message, self.path(container)))
        stopped = began + (self.outcome(container, kind).stops_after or 0.0)
        code = KILLED if stopped > limit else self.stop_code(container)
        stopped = max(min(stopped, limit), began)
        if self.due(stopped):
            status = self.statuses[container["name"]]
            self.statuses[container["name"]] = ended_status(status, code, "", "", format_time(int(stopped)))
        return stopped

    def stop_code(self, container: Object) -> int:
        """Exit code of a container that is stopped. An init container has not done its work."""
        is_init = container in (self.spec.get("initContainers") or ()) and not is_sidecar(container)
        return TERMINATED if is_init else stop_code(self.spec)

    def step(self, phase: str, reason: str = "", message: str = "") -> Step:
        if self.is_resized:
            self.events += pod_resize.resize_events(self.pod)
        status = self.status(phase, reason, message)
        return Step(status if status != self.old else None, self.events, self.wake)

    def status(self, phase: str, reason: str, message: str) -> Object:
        """Status of the pod with the present states of its containers."""
        pod, spec, old = self.pod, self.spec, self.old
        values = {**old, "phase": phase}
        if generation := pod["metadata"].get("generation"):
            values["observedGeneration"] = generation
        if reason:
            values |= {"reason": reason, "message": message}
        elif phase != old.get("phase"):
            values.pop("reason", None)
            values.pop("message", None)
        self.set_addresses(values)
        values.setdefault("startTime", self.stamp)
        values.setdefault("qosClass", qos_class(spec))
        for part, field in PARTS:
            if listed := spec.get(part):
                items = [self.statuses[name] for c in listed if (name := c["name"]) in self.statuses]
                values[field] = items if part == "initContainers" else sorted(items, key=lambda s: s["name"])
        self.set_resources(values)
        added = []
        if self.resize_problem:
            event = pod_resize.infeasible_event(pod, self.resize_problem)
            self.say(f"resize/{pod['metadata'].get('generation')}", event)
            added.append(pod_resize.pending_condition(pod, self.resize_problem, self.stamp))
        if reason == "Evicted":
            added.append(self.disruption(message))
        has_sandbox = self.has_sandbox and phase not in TERMINAL
        values["conditions"] = pod_status.conditions_of(
            pod, values, added, has_sandbox=has_sandbox, stamp=self.stamp
        )
        return {key: values[key] for key in FIELDS if key in values} | values

    def set_addresses(self, values: Object) -> None:
        hosts = self.around.host_addresses
        if hosts and values.get("hostIP") != hosts[0]:
            values |= {"hostIP": hosts[0], "hostIPs": [{"ip": address} for address in hosts]}
        if "podIP" in values:
            return
        if self.spec.get("hostNetwork"):
            addresses = hosts
        elif self.has_sandbox:
            addresses = self.around.addresses()
        else:
            return
        if addresses:
            values |= {"podIP": addresses[0], "podIPs": [{"ip": address} for address in addresses]}

    def set_resources(self, values: Object) -> None:
        """Resources of the whole pod. Those of a running pod change with a resize only."""
        if "resources" in values and not self.is_resized:
            return
        resources: Object = {}
        if limits := amounts.pod_limits(self.pod):
            resources["limits"] = amounts.write(limits)
        if requests := amounts.pod_requests(self.pod):
            resources["requests"] = values["allocatedResources"] = amounts.write(requests)
        values["resources"] = resources

    def disruption(self, message: str) -> Object:
        condition: Object = {"type": "DisruptionTarget"}
        observe_generation(condition, self.pod)
        return condition | {
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": self.stamp,
            "reason": "TerminationByKubelet",
            "message": message,
        }
