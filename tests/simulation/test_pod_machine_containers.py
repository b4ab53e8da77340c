"""Several containers of a simulated pod: init containers, sidecars, restart rules."""

from __future__ import annotations

import pytest

from tests.simulation.pods import SimulatedPod, container

BACK_OFF = "back-off {} restarting failed container=web pod=p_n(u)"


def test_init_containers_run_in_order() -> None:
    pod = (
        SimulatedPod(initContainers=[container("one"), container("two")])
        .annotate(one="succeed after 3s")
        .settle()
    )
    assert (pod.state("one"), pod.state("two"), pod.state()) == (
        "running",
        "PodInitializing",
        "PodInitializing",
    )
    assert pod.phase == "Pending"
    assert pod.condition("Initialized")["message"] == "containers with incomplete status: [one two]"
    pod.wait(3)
    assert (pod.state("one"), pod.state("two"), pod.state()) == ("Completed", "Completed", "running")
    assert pod.held("one")["ready"]
    assert pod.phase == "Running"
    assert [event.field_path for event in pod.events if event.reason == "Started"] == [
        "spec.initContainers{one}",
        "spec.initContainers{two}",
        "spec.containers{web}",
    ]


def test_init_containers_that_end_at_once_need_one_write() -> None:
    pod = SimulatedPod(initContainers=[container("one"), container("two")]).settle()
    assert len(pod.history) == 1
    assert pod.phase == "Running"


def test_failed_init_container_is_retried() -> None:
    pod = SimulatedPod(initContainers=[container("one")]).annotate(one="fail 2 times 2").settle()
    assert (pod.phase, pod.state("one"), pod.state()) == (
        "Pending",
        "CrashLoopBackOff",
        "PodInitializing",
    )
    pod.wait(11)
    assert (pod.phase, pod.state("one")) == ("Running", "Completed")


def test_failed_init_container_fails_a_pod_that_never_restarts() -> None:
    pod = SimulatedPod(
        initContainers=[container("side", restartPolicy="Always"), container("one")], restartPolicy="Never"
    )
    pod.annotate(one="fail 2").settle()
    assert pod.phase == "Failed"
    assert pod.state() == "PodInitializing"
    assert "terminated" in pod.held("side")["state"]


def test_sidecars_start_before_and_stop_after_the_containers() -> None:
    sidecars = [container("first", restartPolicy="Always"), container("second", restartPolicy="Always")]
    pod = SimulatedPod(initContainers=sidecars, outcome="succeed after 5s", restartPolicy="Never").settle()
    assert pod.phase == "Running"
    assert pod.held("first")["ready"]
    pod.wait(5)
    assert pod.phase == "Succeeded"
    assert pod.messages("Killing") == ["Stopping container second", "Stopping container first"]


def test_crashed_sidecar_is_restarted() -> None:
    pod = SimulatedPod(initContainers=[container("side", restartPolicy="Always")], restartPolicy="Never")
    pod.annotate(side="fail after 5s").settle().wait(6)
    assert pod.phase == "Running"
    assert pod.held("side")["restartCount"] == 1
    assert pod.conditions()["Initialized"] == "True"


def test_sidecar_that_does_not_start_holds_up_the_pod() -> None:
    pod = (
        SimulatedPod(initContainers=[container("side", restartPolicy="Always")])
        .annotate(side="ErrImagePull")
        .settle()
    )
    assert (pod.phase, pod.state()) == ("Pending", "PodInitializing")


def test_one_running_container_keeps_the_pod_running() -> None:
    pod = SimulatedPod(container("a"), container("b"), restartPolicy="Never").annotate(a="fail").settle()
    assert (pod.phase, pod.state("a"), pod.state("b")) == ("Running", "Error", "running")
    assert pod.conditions()["Ready"] == "False"


def test_container_level_restart_policy() -> None:
    pod = SimulatedPod(
        container("a", restartPolicy="Never"), container("b"), restartPolicy="Always"
    ).annotate(a="fail")
    pod.settle()
    assert (pod.state("a"), pod.held("a")["restartCount"]) == ("Error", 0)


@pytest.mark.parametrize(("code", "restarts"), [(42, 1), (43, 0)])
def test_restart_rules(code: int, restarts: int) -> None:
    rules = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
    pod = SimulatedPod(
        container(restartPolicy="Never", restartPolicyRules=rules), outcome=f"fail {code} times 1"
    )
    pod.settle()
    assert pod.held()["restartCount"] == restarts
    assert pod.phase == ("Running" if restarts else "Failed")


def test_rule_that_restarts_all_containers() -> None:
    rules = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}]
    pod = SimulatedPod(
        container("a", restartPolicy="Never", restartPolicyRules=rules),
        container("b"),
        initContainers=[container("setup")],
        restartPolicy="Never",
    )
    pod.annotate(a="fail 42 times 1").settle()
    assert (pod.phase, pod.state("b")) == ("Running", "RestartingAllContainers")
    pod.wait(1)
    assert pod.phase == "Running"
    assert [pod.held(name)["restartCount"] for name in ("setup", "a", "b")] == [1, 1, 1]
    assert pod.held("b")["lastState"]["terminated"]["reason"] == "RestartingAllContainers"
    assert pod.condition("AllContainersRestarting")["status"] == "False"
    assert any(
        found["status"] == "True" and found["type"] == "AllContainersRestarting"
        for status in pod.history
        for found in status["conditions"]
    )


def test_rule_that_always_restarts_all_containers_does_not_spin() -> None:
    rules = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}]
    pod = (
        SimulatedPod(container("a", restartPolicy="Never", restartPolicyRules=rules))
        .annotate(a="fail 42")
        .settle()
    )
    pod.wait(10)
    assert pod.held("a")["restartCount"] == 10
