"""State machine of a simulated pod."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kubist.simulation.podmachine import end_containers
from kubist.simulation.shell import Run
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
