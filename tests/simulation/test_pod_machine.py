"""State machine of a simulated pod."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulation.pods import START, SimulatedPod, container, state_of

BACK_OFF = "back-off {} restarting failed container=web pod=p_n(u)"


def test_default_pod_runs_after_one_write() -> None:
    pod = SimulatedPod().settle()
    assert len(pod.history) == 1
    assert pod.phase == "Running"
    held = pod.held()
    assert held["ready"]
    assert held["started"]
    assert held["restartCount"] == 0
    assert held["state"] == {"running": {"startedAt": "2027-01-15T08:00:00Z"}}
    assert held["image"] == "web:1"
    assert held["containerID"].startswith("simulated://")
    assert pod.wake == float("inf")


def test_status_has_the_fields_of_a_kubelet_in_their_order() -> None:
    pod = SimulatedPod().settle()
    assert list(pod.status) == [
        "observedGeneration",
        "phase",
        "conditions",
        "hostIP",
        "hostIPs",
        "podIP",
        "podIPs",
        "startTime",
        "containerStatuses",
        "qosClass",
        "resources",
    ]
    assert pod.status["podIPs"] == [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]
    assert [found["type"] for found in pod.status["conditions"]] == [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ]
    assert {found["observedGeneration"] for found in pod.status["conditions"]} == {1}
    assert set(pod.conditions().values()) == {"True"}


def test_conditions_of_others_come_first_and_stay() -> None:
    pod = SimulatedPod()
    pod.status["conditions"] = [
        {"type": "example.com/gate", "status": "True"},
        {"type": "PodScheduled", "status": "True"},
    ]
    pod.settle()
    assert [found["type"] for found in pod.status["conditions"]][:2] == [
        "example.com/gate",
        "PodReadyToStartContainers",
    ]


def test_start_has_the_events_of_a_kubelet() -> None:
    pod = SimulatedPod().settle()
    assert [(event.type, event.reason, event.message, event.field_path) for event in pod.events] == [
        (
            "Normal",
            "Pulled",
            'Container image "web:1" already present on machine and can be accessed by the pod',
            "spec.containers{web}",
        ),
        ("Normal", "Created", "Container created", "spec.containers{web}"),
        ("Normal", "Started", "Container started", "spec.containers{web}"),
    ]


def test_image_is_pulled_with_the_policy_always() -> None:
    pod = SimulatedPod(container(imagePullPolicy="Always")).settle()
    assert pod.reasons() == ["Pulling", "Pulled", "Created", "Started"]
    assert pod.messages("Pulling") == ['Pulling image "web:1"']


def test_container_statuses_are_sorted_by_name_and_init_ones_by_spec() -> None:
    pod = SimulatedPod(
        container("b"), container("a"), initContainers=[container("z"), container("y")]
    ).settle()
    assert [held["name"] for held in pod.status["containerStatuses"]] == ["a", "b"]
    assert [held["name"] for held in pod.status["initContainerStatuses"]] == ["z", "y"]


def test_pod_of_a_job_runs_and_succeeds() -> None:
    pod = SimulatedPod(job=True, restartPolicy="Never").settle()
    assert [status["phase"] for status in pod.history] == ["Running", "Succeeded"]
    assert pod.state() == "Completed"
    assert pod.conditions() == {
        "PodReadyToStartContainers": "False",
        "Initialized": "True",
        "Ready": "False",
        "ContainersReady": "False",
        "PodScheduled": "True",
    }
    assert {pod.condition(kind).get("reason") for kind in ("Initialized", "Ready", "ContainersReady")} == {
        "PodCompleted"
    }


def test_delay_counts_from_the_fraction_of_the_second() -> None:
    pod = SimulatedPod(delay=2.0).settle()
    assert (pod.phase, pod.state()) == ("Pending", "ContainerCreating")
    assert pod.wake == START + 2
    assert not pod.condition("PodReadyToStartContainers").get("reason")
    assert pod.conditions()["PodReadyToStartContainers"] == "False"
    assert "podIP" not in pod.status
    assert pod.wait(1.9).phase == "Pending"
    assert pod.wait(0.2).phase == "Running"


def test_state_survives_a_restart_of_the_loop() -> None:
    pod = SimulatedPod(outcome="succeed after 10s", restartPolicy="Never").settle()
    pod.wait(5)
    pod.memory = type(pod.memory)()
    pod.settle()
    assert pod.wake - START <= 11
    pod.wait(6)
    assert pod.phase == "Succeeded"


@pytest.mark.parametrize(
    ("policy", "outcome", "phase", "restarts"),
    [
        ("Never", "succeed", "Succeeded", 0),
        ("Never", "fail 3", "Failed", 0),
        ("OnFailure", "succeed", "Succeeded", 0),
        ("OnFailure", "fail 3", "Running", 1),
        ("OnFailure", "fail 3 times 1", "Running", 1),
        ("Always", "succeed", "Running", 1),
        ("Always", "run", "Running", 0),
    ],
)
def test_restart_policy_decides_after_an_exit(policy: str, outcome: str, phase: str, restarts: int) -> None:
    pod = SimulatedPod(outcome=outcome, restartPolicy=policy).settle()
    assert (pod.phase, pod.held()["restartCount"]) == (phase, restarts)


def test_failed_container_has_exit_code_reason_and_times() -> None:
    pod = SimulatedPod(outcome="fail 3 after 2s", restartPolicy="Never").settle().wait(3)
    ended = pod.held()["state"]["terminated"]
    assert ended == {
        "exitCode": 3,
        "reason": "Error",
        "startedAt": "2027-01-15T08:00:00Z",
        "finishedAt": "2027-01-15T08:00:02Z",
        "containerID": pod.held()["containerID"],
    }
    assert not pod.held()["ready"]
    assert not pod.held()["started"]
    assert pod.condition("Ready")["reason"] == "PodFailed"


def test_crash_loop_shows_every_state() -> None:
    pod = SimulatedPod(outcome="crash-loop").settle()
    shown = [
        (state_of(status["containerStatuses"][0]), status["containerStatuses"][0]["restartCount"])
        for status in pod.history
    ]
    assert shown == [("running", 0), ("Error", 0), ("running", 1), ("Error", 1), ("CrashLoopBackOff", 1)]
    held = pod.held()
    assert held["state"]["waiting"]["message"] == BACK_OFF.format("10s")
    assert held["lastState"]["terminated"]["exitCode"] == 1
    assert pod.phase == "Running"
    assert pod.condition("Ready")["message"] == "containers with unready status: [web]"
    assert pod.messages("BackOff") == ["Back-off restarting failed container web in pod p_n(u)"]


def test_back_off_doubles_up_to_five_minutes() -> None:
    pod = SimulatedPod(outcome="crash-loop").settle()
    shown = []
    for _ in range(7):
        shown.append(pod.held()["state"]["waiting"]["message"].split()[1])
        pod.wait(pod.wake - pod.now)
    assert shown == ["10s", "20s", "40s", "1m20s", "2m40s", "5m0s", "5m0s"]


def test_back_off_is_reset_after_a_long_run() -> None:
    pod = SimulatedPod(outcome="fail after 11m").settle()
    pod.wait(2 * 660 + 5)
    assert pod.held()["restartCount"] == 2
    assert pod.state() == "running"


def test_container_that_succeeds_in_the_end_leaves_the_crash_loop() -> None:
    pod = SimulatedPod(outcome="fail times 2").settle()
    assert pod.state() == "CrashLoopBackOff"
    pod.wait(11)
    assert (pod.state(), pod.held()["restartCount"], pod.conditions()["Ready"]) == ("running", 2, "True")


def test_out_of_memory() -> None:
    pod = SimulatedPod(outcome="OOMKilled", restartPolicy="Never").settle()
    assert pod.held()["state"]["terminated"]["exitCode"] == 137
    assert pod.state() == "OOMKilled"
    assert pod.phase == "Failed"


def test_pod_that_is_never_ready() -> None:
    pod = SimulatedPod(outcome="never-ready").settle()
    assert pod.phase == "Running"
    assert pod.held()["started"]
    assert not pod.held()["ready"]
    assert pod.condition("ContainersReady")["reason"] == "ContainersNotReady"
    assert pod.wake == float("inf")


@pytest.mark.parametrize(
    ("probe", "message"),
    [
        ({"httpGet": {"port": 80}}, "HTTP probe failed with statuscode: 503"),
        ({"tcpSocket": {"port": 80}}, "dial tcp :80: connect: connection refused"),
        ({"grpc": {"port": 80}}, 'service unhealthy (responded with "NOT_SERVING")'),
        ({"exec": {"command": ["false"]}}, ""),
    ],
)
def test_probe_of_a_container_that_is_not_ready_fails(probe: dict[str, Any], message: str) -> None:
    pod = SimulatedPod(container(readinessProbe=probe), outcome="never-ready").settle()
    assert pod.messages("Unhealthy") == [f"Readiness probe failed: {message}"]


def test_pod_that_is_ready_after_a_delay() -> None:
    pod = SimulatedPod(outcome="ready after 5s").settle()
    assert pod.conditions()["Ready"] == "False"
    assert pod.wait(4.9).conditions()["Ready"] == "False"
    pod.wait(0.2)
    assert pod.conditions()["Ready"] == "True"
    assert pod.condition("Ready")["lastTransitionTime"] == "2027-01-15T08:00:05Z"
    assert len(pod.history) == 2


def test_image_errors_alternate() -> None:
    pod = SimulatedPod(outcome="ErrImagePull").settle()
    assert (pod.phase, pod.state()) == ("Pending", "ErrImagePull")
    assert pod.held()["state"]["waiting"]["message"] == (
        'rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/web:1": failed to '
        'resolve reference "docker.io/library/web:1": docker.io/library/web:1: not found'
    )
    pod.wait(2)
    assert pod.state() == "ImagePullBackOff"
    assert pod.held()["state"]["waiting"]["message"].startswith(
        'Back-off pulling image "web:1": ErrImagePull: rpc error'
    )
    pod.wait(8.5)
    assert pod.state() == "ErrImagePull"
    pod.wait(15)
    assert pod.state() == "ImagePullBackOff"
    pod.wait(5)
    assert pod.state() == "ErrImagePull"
    assert pod.reasons()[:5] == ["Pulling", "Failed", "Failed", "BackOff", "Failed"]
    assert "Error: ImagePullBackOff" in pod.messages("Failed")
    pod.pod["metadata"]["annotations"].clear()
    assert pod.settle().state() == "running"


def test_image_error_with_the_policy_never() -> None:
    pod = SimulatedPod(container(imagePullPolicy="Never"), outcome="ErrImagePull").settle()
    assert pod.state() == "ErrImageNeverPull"
    assert pod.wake == float("inf")


def test_scripted_config_error() -> None:
    pod = SimulatedPod(outcome="CreateContainerConfigError").settle()
    assert (pod.phase, pod.state()) == ("Pending", "CreateContainerConfigError")
    assert pod.reasons() == ["Pulled", "Failed"]


def test_evicted_pod() -> None:
    pod = SimulatedPod(outcome="evicted after 5s").settle().wait(6)
    assert (pod.phase, pod.status["reason"]) == ("Failed", "Evicted")
    assert pod.status["message"] == "The node was low on resource: memory. "
    assert pod.condition("DisruptionTarget")["reason"] == "TerminationByKubelet"
    assert pod.held()["state"]["terminated"]["exitCode"] == 137
    assert pod.reasons()[-2:] == ["Evicted", "Killing"]


def test_container_that_waits_when_its_pod_is_evicted_is_lost() -> None:
    pod = SimulatedPod(outcome="evicted after 5s, CreateContainerConfigError").settle().wait(6)
    assert (pod.phase, pod.state()) == ("Failed", "ContainerStatusUnknown")


def test_active_deadline() -> None:
    pod = SimulatedPod(activeDeadlineSeconds=30).settle()
    assert pod.wait(29.5).phase == "Running"
    pod.wait(1)
    assert (pod.phase, pod.status["reason"]) == ("Failed", "DeadlineExceeded")
    assert pod.messages("DeadlineExceeded") == [
        "Pod was active on the node longer than the specified deadline"
    ]
    assert pod.history[-1] is pod.status
    assert len(pod.history) == 2


def test_terminal_pod_does_not_change() -> None:
    pod = SimulatedPod(outcome="succeed", restartPolicy="Never").settle()
    pod.pod["metadata"]["annotations"]["kubist.io/outcome"] = "fail"
    count = len(pod.history)
    pod.wait(1000)
    assert len(pod.history) == count


@pytest.mark.parametrize("outcome", ["crash-loop", "OOMKilled", "succeed"])
def test_run_that_ends_at_once_is_never_ready(outcome: str) -> None:
    pod = SimulatedPod(outcome=outcome).settle().wait(11)
    assert len(pod.history) > 3
    assert not any(status["containerStatuses"][0]["ready"] for status in pod.history)
    assert {pod.condition("Ready")["status"], pod.condition("ContainersReady")["status"]} == {"False"}


def test_root_is_refused_if_the_pod_says_so() -> None:
    held = container(securityContext={"runAsUser": 0})
    pod = SimulatedPod(held, securityContext={"runAsNonRoot": True, "runAsUser": 5}).settle()
    message = 'container\'s runAsUser breaks non-root policy (pod: "p_n(u)", container: web)'
    assert pod.held()["state"] == {"waiting": {"reason": "CreateContainerConfigError", "message": message}}
    assert pod.messages("Failed") == [f"Error: {message}"]


def test_user_of_a_container_that_is_not_root_is_not_known() -> None:
    assert "user" not in SimulatedPod(securityContext={"runAsNonRoot": True}).settle().held()
    named = {"runAsNonRoot": True, "runAsUser": 5}
    assert SimulatedPod(securityContext=named).settle().held()["user"]["linux"]["uid"] == 5
