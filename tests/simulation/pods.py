"""A pod and its state machine without a server, for tests: time passes only when a test says so."""

from __future__ import annotations

import copy
import math
from typing import Any

from kubist.cluster.simulation.commands import Run, run_of
from kubist.cluster.simulation.container_machine import Memory, Surroundings
from kubist.cluster.simulation.containers import PodEvent
from kubist.cluster.simulation.pod_machine import advance
from kubist.cluster.simulation.pod_needs import missing_for
from kubist.model.meta.times import format_time

START = 1_800_000_000.25


def container(name: str = "web", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": f"{name}:1", "resources": {}, "imagePullPolicy": "IfNotPresent", **fields}


class SimulatedPod:
    """Takes a pod through its states and notes every status that is written."""

    def __init__(
        self,
        *containers: dict[str, Any],
        job: bool = False,
        delay: float = 0.0,
        outcome: str = "",
        **spec: Any,
    ) -> None:
        annotations = {"kubist.io/outcome": outcome} if outcome else {}
        metadata = {"name": "p", "namespace": "n", "uid": "u", "generation": 1, "annotations": annotations}
        spec = {
            "nodeName": "node",
            "restartPolicy": "Always",
            "containers": list(containers or [container()]),
            **spec,
        }
        status = {"phase": "Pending", "qosClass": "BestEffort"}
        self.pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        self.pod["status"] = status
        self.now = START
        self.memory = Memory()
        self.runs: dict[tuple[str, int], Run | None] = {}
        self.files: set[str] = set()
        self.objects: dict[tuple[str, str], dict[str, Any]] = {("serviceaccounts", "default"): {}}
        self.allocatable = {"cpu": "4", "memory": "8Gi"}
        self.job, self.delay = job, delay
        self.events: list[PodEvent] = []
        self.history: list[dict[str, Any]] = []
        self.wake = math.inf
        self.is_stopped = False

    def annotate(self, **outcomes: str) -> SimulatedPod:
        for name, text in outcomes.items():
            self.pod["metadata"]["annotations"][f"kubist.io/outcome.{name}"] = text
        return self

    def _run(self, container: dict[str, Any], attempt: int) -> Run | None:
        place = (container["name"], attempt)
        if place not in self.runs:
            run = self.runs[place] = run_of(self.pod, container, attempt, self.files)
            self.files |= run.files if run is not None else set()
        return self.runs[place]

    def _look_up(self, resource: str, name: str) -> dict[str, Any] | None:
        return self.objects.get((resource, name))

    def settle(self) -> SimulatedPod:
        """Does all steps that are due now."""
        for _ in range(50):
            around = Surroundings(
                ["192.0.2.1"],
                lambda: ["10.0.0.1", "fd00::1"],
                self._run,
                self.delay,
                is_of_job=self.job,
                missing=missing_for(self.pod, self._look_up),
                allocatable=self.allocatable,
            )
            before = copy.deepcopy(self.pod)
            step = advance(self.pod, around, self.memory, self.now)
            assert self.pod == before, "a step must not change the pod"
            self.events += step.events
            self.wake, self.is_stopped = step.wake, step.is_stopped
            if step.status is not None:
                self.pod = {**self.pod, "status": step.status}
                self.history.append(step.status)
            elif step.wake > self.now:
                return self
        raise AssertionError("the pod does not settle")

    def wait(self, seconds: float) -> SimulatedPod:
        """Lets time pass. The pod wakes up when it wants to."""
        end = self.now + seconds
        while self.wake <= end:
            self.now = max(self.wake, self.now)
            self.settle()
        self.now = end
        return self.settle()

    def delete(self, grace: int) -> SimulatedPod:
        self.pod["metadata"]["deletionTimestamp"] = format_time(int(self.now) + grace)
        self.pod["metadata"]["deletionGracePeriodSeconds"] = grace
        return self.settle()

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.pod["status"]
        return found

    @property
    def phase(self) -> str:
        return str(self.status["phase"])

    def held(self, name: str = "web") -> dict[str, Any]:
        """Status of a container."""
        parts = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
        return next(held for part in parts for held in self.status.get(part) or () if held["name"] == name)

    def state(self, name: str = "web") -> str:
        """State of a container in one word: running, Completed, CrashLoopBackOff, …"""
        return state_of(self.held(name))

    def conditions(self) -> dict[str, str]:
        return {found["type"]: found["status"] for found in self.status["conditions"]}

    def condition(self, kind: str) -> dict[str, Any]:
        return next(found for found in self.status["conditions"] if found["type"] == kind)

    def reasons(self) -> list[str]:
        return [event.reason for event in self.events]

    def messages(self, reason: str) -> list[str]:
        return [event.message for event in self.events if event.reason == reason]


def state_of(held: dict[str, Any]) -> str:
    kind, value = next(iter(held["state"].items()))
    return kind if kind == "running" else str(value["reason"])
