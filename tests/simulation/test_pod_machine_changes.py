"""Changes of a simulated pod while it runs, and its end."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kubist.cluster.simulation.commands import Run
from kubist.cluster.simulation.pod_machine import end_containers
from tests.simulation.pods import SimulatedPod, container, state_of

BACK_OFF = "back-off {} restarting failed container=web pod=p_n(u)"


def test_commands_decide_without_an_outcome() -> None:
    pod = (
        SimulatedPod(container(command=["sh", "-c", "sleep 2; exit 3"]), restartPolicy="Never")
        .settle()
        .wait(2.5)
    )
    assert pod.held()["state"]["terminated"]["exitCode"] == 3
    pod = SimulatedPod(container(command=["sleep", "100"]), job=True, restartPolicy="Never").settle().wait(50)
    assert pod.phase == "Running"
    assert pod.wait(51).phase == "Succeeded"


def test_outcome_comes_before_the_command() -> None:
    pod = SimulatedPod(container(command=["false"]), outcome="run").settle()
    assert pod.state() == "running"


def test_files_on_a_volume_end_a_crash_loop() -> None:
    script = "if [[ -r /data/foo ]]; then exit 0; else touch /data/foo; exit 1; fi"
    pod = SimulatedPod(container(command=["/bin/sh", "-c", script]), restartPolicy="OnFailure").settle()
    assert (pod.phase, pod.held()["restartCount"]) == ("Succeeded", 1)


def test_ephemeral_container_starts_and_is_not_restarted() -> None:
    pod = SimulatedPod().settle()
    pod.pod["spec"]["ephemeralContainers"] = [container("debug", command=["sh", "-c", "sleep 5; exit 2"])]
    pod.settle()
    assert pod.state("debug") == "running"
    assert pod.events[-1].field_path == "spec.ephemeralContainers{debug}"
    pod.wait(10)
    assert pod.held("debug")["state"]["terminated"]["exitCode"] == 2
    assert pod.phase == "Running"
    assert pod.conditions()["Ready"] == "True"


def test_image_change_restarts_the_container() -> None:
    pod = SimulatedPod().settle()
    pod.pod["spec"]["containers"][0]["image"] = "web:2"
    pod.pod["metadata"]["generation"] = 2
    pod.settle()
    held = pod.held()
    assert (held["image"], held["restartCount"], state_of(held)) == ("web:2", 1, "running")
    assert held["lastState"]["terminated"]["exitCode"] == 0
    assert pod.messages("Killing") == ["Container web definition changed, will be restarted"]
    assert pod.status["observedGeneration"] == 2


def resources(cpu: str) -> dict[str, Any]:
    return {"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": {"memory": "1Gi"}}


def test_resize_changes_the_resources_in_the_status() -> None:
    pod = SimulatedPod(container(resources=resources("1"))).settle()
    assert pod.held()["allocatedResources"] == {"cpu": "1", "memory": "1Gi"}
    assert pod.held()["resources"] == resources("1")
    assert pod.status["allocatedResources"] == {"cpu": "1", "memory": "1Gi"}
    pod.pod["spec"]["containers"][0]["resources"] = resources("2")
    pod.settle()
    assert pod.held()["resources"] == resources("2")
    assert pod.held()["restartCount"] == 0
    assert pod.status["allocatedResources"] == {"cpu": "2", "memory": "1Gi"}
    assert pod.reasons()[-2:] == ["ResizeStarted", "ResizeCompleted"]
    assert pod.events[-1].message.startswith(
        'Pod resize completed: {"containers":[{"name":"web","resources":{'
    )


def test_resize_restarts_a_container_by_its_policy() -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    pod = SimulatedPod(container(resources=resources("1"), resizePolicy=policy)).settle()
    pod.pod["spec"]["containers"][0]["resources"] = resources("2")
    pod.settle()
    assert (pod.held()["restartCount"], pod.held()["resources"]) == (1, resources("2"))
    assert pod.messages("Killing") == ["Container web resize requires restart"]


def test_resize_beyond_the_node_is_infeasible() -> None:
    pod = SimulatedPod(container(resources=resources("1"))).settle()
    pod.pod["spec"]["containers"][0]["resources"] = resources("100")
    pod.settle()
    assert pod.held()["resources"] == resources("1")
    pending = pod.condition("PodResizePending")
    assert (pending["reason"], pending["status"]) == ("Infeasible", "True")
    assert pending["message"] == "Node didn't have enough capacity: cpu, requested: 100000, capacity: 4000"
    pod.pod["spec"]["containers"][0]["resources"] = resources("2")
    pod.settle()
    assert "PodResizePending" not in pod.conditions()


def test_readiness_gates() -> None:
    pod = SimulatedPod(readinessGates=[{"conditionType": "example.com/gate"}]).settle()
    assert pod.condition("Ready")["reason"] == "ReadinessGatesNotReady"
    assert pod.condition("Ready")["message"] == (
        'corresponding condition of pod readiness gate "example.com/gate" does not exist.'
    )
    pod.status["conditions"].append({"type": "example.com/gate", "status": "False"})
    pod.settle()
    assert 'is not "True", but False' in pod.condition("Ready")["message"]
    pod.condition("example.com/gate")["status"] = "True"
    pod.settle()
    assert pod.conditions()["Ready"] == "True"


def test_host_network_pod_has_the_addresses_of_its_node() -> None:
    pod = SimulatedPod(hostNetwork=True).settle()
    assert pod.status["podIP"] == pod.status["hostIP"] == "192.0.2.1"


def test_volume_mounts_and_user_are_reported() -> None:
    mounts = [{"name": "v", "mountPath": "/v"}, {"name": "r", "mountPath": "/r", "readOnly": True}]
    held = container(volumeMounts=mounts, securityContext={"runAsUser": 5})
    pod = SimulatedPod(held, securityContext={"fsGroup": 7}).settle()
    assert pod.held()["volumeMounts"] == [
        {"name": "v", "mountPath": "/v"},
        {"name": "r", "mountPath": "/r", "readOnly": True, "recursiveReadOnly": "Disabled"},
    ]
    assert pod.held()["user"] == {"linux": {"uid": 5, "gid": 0, "supplementalGroups": [0, 7]}}


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [("Always", 0, "Succeeded"), ("OnFailure", 143, "Failed"), ("Never", 143, "Failed")],
)
def test_deleted_pod_stops_at_once(policy: str, code: int, phase: str) -> None:
    pod = SimulatedPod(restartPolicy=policy).settle().delete(30)
    assert pod.is_stopped
    assert pod.held()["state"]["terminated"]["exitCode"] == code
    assert pod.phase == phase
    assert pod.messages("Killing") == ["Stopping container web"]


def test_slow_termination_takes_its_time() -> None:
    pod = SimulatedPod(outcome="slow-termination 10s").settle().delete(30)
    assert not pod.is_stopped
    assert pod.state() == "running"
    pod.wait(9)
    assert not pod.is_stopped
    pod.wait(2)
    assert pod.is_stopped
    assert pod.messages("Killing") == ["Stopping container web"]
    assert pod.held()["state"]["terminated"]["exitCode"] == 0


def test_slow_termination_is_cut_at_the_grace_period() -> None:
    pod = SimulatedPod(outcome="slow-termination 1m").settle().delete(5)
    pod.wait(3)
    assert not pod.is_stopped
    pod.wait(3)
    assert pod.is_stopped
    assert pod.held()["state"]["terminated"]["exitCode"] == 137


def test_sidecars_stop_last_when_a_pod_is_deleted() -> None:
    sidecars = [container("first", restartPolicy="Always"), container("second", restartPolicy="Always")]
    pod = SimulatedPod(initContainers=sidecars, outcome="slow-termination 5s").annotate(
        second="slow-termination 3s"
    )
    pod.settle().delete(30)
    pod.wait(6)
    assert not pod.is_stopped
    pod.wait(3)
    assert pod.is_stopped
    ends = [pod.held(name)["state"]["terminated"]["finishedAt"] for name in ("web", "second", "first")]
    assert ends == ["2027-01-15T08:00:05Z", "2027-01-15T08:00:08Z", "2027-01-15T08:00:08Z"]


def test_pod_that_waits_is_deleted_as_failed() -> None:
    pod = SimulatedPod(outcome="ErrImagePull").settle().delete(30)
    assert pod.is_stopped
    assert pod.phase == "Failed"


def test_waiting_container_of_a_deleted_pod_is_lost() -> None:
    pod = SimulatedPod(outcome="ErrImagePull").settle().delete(30)
    assert pod.held()["state"] == {
        "terminated": {
            "exitCode": 137,
            "reason": "ContainerStatusUnknown",
            "message": "The container could not be located when the pod was terminated",
            "startedAt": None,
            "finishedAt": None,
        }
    }


@pytest.mark.parametrize(
    ("outcome", "code", "phase"), [("crash-loop 3", 3, "Failed"), ("succeed", 0, "Succeeded")]
)
def test_deleted_pod_shows_the_last_run_instead_of_its_back_off(outcome: str, code: int, phase: str) -> None:
    pod = SimulatedPod(outcome=outcome).settle()
    assert pod.state() == "CrashLoopBackOff"
    pod.delete(30)
    assert (pod.held()["state"]["terminated"]["exitCode"], pod.phase) == (code, phase)


def test_init_container_of_a_deleted_pod_did_not_do_its_work() -> None:
    pod = SimulatedPod(initContainers=[container("one"), container("two")])
    pod.annotate(one="succeed after 1m").settle().delete(30)
    assert pod.held("one")["state"]["terminated"]["exitCode"] == 143
    assert (pod.state("two"), pod.state(), pod.phase) == ("PodInitializing", "PodInitializing", "Failed")


def test_first_init_container_of_a_deleted_pod_is_lost_even_if_it_never_ran() -> None:
    pod = SimulatedPod(initContainers=[container("one"), container("two")])
    pod.annotate(one="ErrImagePull").settle().delete(30)
    assert pod.state("one") == "ContainerStatusUnknown"
    assert (pod.state("two"), pod.state()) == ("PodInitializing", "PodInitializing")


def test_terminal_pod_is_deleted_without_a_write() -> None:
    pod = SimulatedPod(outcome="succeed", restartPolicy="Never").settle()
    count = len(pod.history)
    pod.delete(30)
    assert pod.is_stopped
    assert len(pod.history) == count


def test_containers_can_be_ended_from_outside() -> None:
    pod = SimulatedPod(container("a"), container("b"), restartPolicy="Never").settle()
    status = end_containers(pod.pod, ["a"], Run(code=137, reason="OOMKilled", output="why"), pod.now + 1)
    assert status is not None
    ended = status["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (137, "OOMKilled", "why")
    assert status["phase"] == "Running"
    pod.pod["status"] = status
    assert end_containers(pod.pod, ["a"], Run(), pod.now) is None
    status = end_containers(pod.pod, ["b"], Run(), pod.now)
    assert status is not None
    assert status["phase"] == "Failed"


@pytest.mark.parametrize("seed", range(40))
def test_any_status_settles(seed: int) -> None:
    """Clients may write any status. No status stops the machine or lets it spin."""
    chosen = random.Random(seed)
    times = [None, "2027-01-15T07:00:00Z", "2027-01-15T08:00:00Z", "2028-01-01T00:00:00Z"]

    def state() -> dict[str, Any]:
        ended = {
            "exitCode": chosen.choice([0, 1, 42, 255]),
            "reason": chosen.choice(["", "Error", "RestartingAllContainers"]),
        }
        ended |= {"startedAt": chosen.choice(times), "finishedAt": chosen.choice(times)}
        waiting = {
            "waiting": {"reason": chosen.choice(["", "CrashLoopBackOff", "ErrImagePull", "PodInitializing"])}
        }
        return chosen.choice(
            [{}, {"running": {"startedAt": chosen.choice(times)}}, {"terminated": ended}, waiting]
        )

    def status(name: str) -> dict[str, Any]:
        count = chosen.choice([0, 1, 7, 10**9])
        found = {"name": name, "state": state(), "lastState": state(), "ready": chosen.random() < 0.5}
        return {**found, "restartCount": count, "image": chosen.choice(["", f"{name}:1"]), "imageID": ""}

    rules = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}]
    pod = SimulatedPod(
        container("a"),
        container("b", restartPolicy="OnFailure", restartPolicyRules=rules),
        initContainers=[container("i"), container("s", restartPolicy="Always")],
        restartPolicy=chosen.choice(["Always", "OnFailure", "Never"]),
        outcome=chosen.choice(
            ["", "fail", "succeed after 1s", "ErrImagePull", "crash-loop 42", "ready after 3s"]
        ),
    )
    names = [name for name in ("a", "b", "i", "s", "unknown") if chosen.random() < 0.8]
    pod.status["initContainerStatuses"] = [status(name) for name in names if name in "is"]
    pod.status["containerStatuses"] = [status(name) for name in names if name not in "is"]
    pod.status["conditions"] = [
        {"type": "PodReadyToStartContainers", "status": chosen.choice(["True", "False"])}
    ]
    pod.settle().wait(100)
    pod.delete(chosen.choice([0, 30])).wait(31)
    assert pod.is_stopped
