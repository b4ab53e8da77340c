"""Job controller on a running server. Pods have no scheduler; the tests write their outcome."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.cluster.control.workloads import job_sync
from kubist.cluster.control.workloads.job_pods import FINALIZER, INDEX
from kubist.model.meta.object import Object
from kubist.testing import Cluster
from tests.waiting import wait_for

pytestmark = pytest.mark.kubist(workloads=True)
MERGE = "application/merge-patch+json"
JOB = "/apis/batch/v1/namespaces/default/jobs/j"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(autouse=True)
def no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_sync, "FIRST_SECONDS", 0.0)


def create(cluster: Cluster, name: str = "j", **spec: Any) -> Object:
    pod = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never", "schedulerName": "none"}
    body = {"backoffLimit": 0, **spec, "template": {"metadata": spec.pop("metadata", {}), "spec": pod}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": body}
    made: Object = cluster.request("POST", JOB.removesuffix("/j"), job)
    return made


def patch(cluster: Cluster, path: str, change: Object) -> Object:
    changed: Object = cluster.request("PATCH", path, change, MERGE)
    return changed


def active(cluster: Cluster, count: int) -> list[Object]:
    """Active pods, as soon as there are so many."""
    pods: list[Object] = []

    def enough() -> bool:
        pods[:] = [
            pod
            for pod in cluster.list("pods")
            if pod["status"]["phase"] in ("Pending", "Running") and "deletionTimestamp" not in pod["metadata"]
        ]
        return len(pods) == count

    wait_for(enough)
    return pods


def end(cluster: Cluster, pod: Object, code: int = 0, **more: Any) -> None:
    """Writes the status of a pod whose container has ended."""
    phase = "Failed" if code else "Succeeded"
    ended = {"terminated": {"exitCode": code, "finishedAt": "2026-01-01T00:00:00Z"}}
    held = {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": ended}
    status = {"phase": phase, "containerStatuses": [held], **more}
    patch(cluster, f"{PODS}/{pod['metadata']['name']}/status", {"status": status})


def conditions(job: Object) -> list[tuple[str, str, str]]:
    return [(c["type"], c["status"], c["reason"]) for c in job["status"].get("conditions") or ()]


def events(cluster: Cluster, name: str = "j") -> set[tuple[str, str, str]]:
    return {
        (event["type"], event["reason"], event["message"])
        for event in cluster.list("events")
        if event["involvedObject"]["name"] == name
    }


def finish(cluster: Cluster, kind: str) -> Object:
    return cluster.wait("job/j", kind)


def test_pods_are_held_until_they_are_counted(cluster: Cluster) -> None:
    create(cluster, completions=2, parallelism=1)
    (first,) = active(cluster, 1)
    assert first["metadata"]["finalizers"] == [FINALIZER]
    running = cluster.wait("job/j", lambda job: job["status"].get("active") == 1)
    assert {"ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}.items() <= running["status"].items()
    end(cluster, first)
    end(cluster, active(cluster, 1)[0])
    job = finish(cluster, "Complete")
    assert job["status"]["succeeded"] == 2
    assert job["status"]["uncountedTerminatedPods"] == {}
    assert "active" not in job["status"]
    assert job["status"]["completionTime"] >= job["status"]["startTime"]
    assert conditions(job) == [
        ("SuccessCriteriaMet", "True", "CompletionsReached"),
        ("Complete", "True", "CompletionsReached"),
    ]
    assert all("finalizers" not in pod["metadata"] for pod in cluster.list("pods"))
    wait_for(lambda: ("Normal", "Completed", "Job completed") in events(cluster))
    name = first["metadata"]["name"]
    assert ("Normal", "SuccessfulCreate", f"Created pod: {name}") in events(cluster)


def test_failures_up_to_the_limit_are_retried(cluster: Cluster) -> None:
    create(cluster, backoffLimit=1)
    end(cluster, active(cluster, 1)[0], 1)
    cluster.wait("job/j", lambda job: job["status"].get("failed") == 1 and job["status"].get("active") == 1)
    end(cluster, active(cluster, 1)[0], 1)
    job = finish(cluster, "Failed")
    assert job["status"]["failed"] == 2
    assert "completionTime" not in job["status"]
    assert conditions(job) == [
        ("FailureTarget", "True", "BackoffLimitExceeded"),
        ("Failed", "True", "BackoffLimitExceeded"),
    ]
    message = "Job has reached the specified backoff limit"
    wait_for(lambda: ("Warning", "BackoffLimitExceeded", message) in events(cluster))


def test_failed_pod_is_replaced_only_after_the_backoff(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_sync, "FIRST_SECONDS", 10.0)
    cluster.clock.set("2026-01-01T00:00:00Z")
    cluster.clock.freeze()
    create(cluster, backoffLimit=6)
    end(cluster, active(cluster, 1)[0], 1)
    job = cluster.wait("job/j", lambda job: job["status"].get("failed") == 1)
    assert "active" not in job["status"]
    cluster.clock.advance(9)
    assert len(cluster.list("pods")) == 1
    cluster.clock.advance(1)
    assert len(active(cluster, 1)) == 1


def test_deleted_pod_counts_as_failed(cluster: Cluster) -> None:
    create(cluster, backoffLimit=3)
    (pod,) = active(cluster, 1)
    cluster.delete(f"pod/{pod['metadata']['name']}")
    cluster.wait("job/j", lambda job: job["status"].get("failed") == 1 and job["status"].get("active") == 1)
    assert active(cluster, 1)[0]["metadata"]["uid"] != pod["metadata"]["uid"]


def test_pod_without_a_node_is_replaced_after_it_has_failed(cluster: Cluster) -> None:
    create(cluster, backoffLimit=3, podReplacementPolicy="Failed")
    (pod,) = active(cluster, 1)
    cluster.delete(f"pod/{pod['metadata']['name']}")
    cluster.wait("job/j", lambda job: job["status"].get("failed") == 1 and job["status"].get("active") == 1)
    wait_for(lambda: len(cluster.list("pods")) == 1)


def test_running_pod_is_replaced_after_it_has_stopped(cluster: Cluster) -> None:
    pod = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
    annotations = {"kubist.io/outcome": "run, slow-termination 20s"}
    template = {"metadata": {"annotations": annotations}, "spec": pod}
    body = {"template": template, "podReplacementPolicy": "Failed"}
    cluster.load({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": body})
    cluster.wait("job/j", lambda job: job["status"].get("ready") == 1)
    name = cluster.list("pods")[0]["metadata"]["name"]
    cluster.delete(f"pod/{name}")
    job = cluster.wait("job/j", lambda job: job["status"].get("terminating") == 1)
    assert "active" not in job["status"]
    assert "failed" not in job["status"]
    cluster.clock.advance("30s")
    job = cluster.wait("job/j", lambda job: job["status"].get("failed") == 1)
    assert (job["status"]["active"], job["status"]["terminating"]) == (1, 0)


def test_deadline_ends_active_pods(cluster: Cluster) -> None:
    create(cluster, activeDeadlineSeconds=600, backoffLimit=6, parallelism=2, completions=2)
    active(cluster, 2)
    cluster.clock.advance("10m")
    job = finish(cluster, "Failed")
    assert conditions(job)[-1] == ("Failed", "True", "DeadlineExceeded")
    assert job["status"]["failed"] == 2
    assert job["status"]["terminating"] == 0
    active(cluster, 0)
    message = "Job was active longer than specified deadline"
    wait_for(lambda: ("Warning", "DeadlineExceeded", message) in events(cluster))


def test_suspended_job_has_no_pods_and_resumes(cluster: Cluster) -> None:
    create(cluster, completions=2, parallelism=2)
    pods = active(cluster, 2)
    patch(cluster, JOB, {"spec": {"suspend": True}})
    job = cluster.wait("job/j", "Suspended")
    assert conditions(job) == [("Suspended", "True", "JobSuspended")]
    assert "startTime" not in job["status"]
    assert "failed" not in job["status"]
    active(cluster, 0)
    patch(cluster, JOB, {"spec": {"suspend": False}})
    active(cluster, 2)
    job = cluster.wait("job/j", lambda job: job["status"].get("active") == 2)
    assert conditions(job) == [("Suspended", "False", "JobResumed")]
    assert job["status"]["startTime"]
    deleted = {("Normal", "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}") for pod in pods}
    wanted = {("Normal", "Suspended", "Job suspended"), ("Normal", "Resumed", "Job resumed"), *deleted}
    wait_for(lambda: wanted <= events(cluster))


def test_parallelism_changes_the_number_of_pods(cluster: Cluster) -> None:
    create(cluster, completions=9, parallelism=3)
    active(cluster, 3)
    patch(cluster, JOB, {"spec": {"parallelism": 1}})
    active(cluster, 1)
    patch(cluster, JOB, {"spec": {"parallelism": 4}})
    active(cluster, 4)
    assert "failed" not in cluster.wait("job/j", lambda job: job["status"].get("active") == 4)["status"]


def by_index(pods: list[Object]) -> dict[str, Object]:
    return {pod["metadata"]["annotations"][INDEX]: pod for pod in pods}


def test_indexed_job_reports_its_indexes(cluster: Cluster) -> None:
    create(cluster, completions=4, parallelism=4, completionMode="Indexed", backoffLimit=6)
    pods = by_index(active(cluster, 4))
    assert pods["2"]["spec"]["hostname"] == "j-2"
    assert pods["2"]["metadata"]["labels"][INDEX] == "2"
    for index in ("0", "1", "3"):
        end(cluster, pods[index])
    job = cluster.wait("job/j", lambda job: job["status"].get("succeeded") == 3)
    assert job["status"]["completedIndexes"] == "0,1,3"
    end(cluster, pods["2"])
    assert finish(cluster, "Complete")["status"]["completedIndexes"] == "0-3"


def test_elastic_indexed_job_follows_its_completions(cluster: Cluster) -> None:
    create(cluster, completions=3, parallelism=3, completionMode="Indexed")
    active(cluster, 3)
    patch(cluster, JOB, {"spec": {"completions": 1, "parallelism": 1}})
    (pod,) = active(cluster, 1)
    assert list(by_index([pod])) == ["0"]
    end(cluster, pod)
    assert finish(cluster, "Complete")["status"]["completedIndexes"] == "0"


def test_failed_indexes_are_limited_one_by_one(cluster: Cluster) -> None:
    create(
        cluster,
        completions=2,
        parallelism=2,
        completionMode="Indexed",
        backoffLimitPerIndex=1,
        backoffLimit=99,
    )
    pods = by_index(active(cluster, 2))
    end(cluster, pods["0"], 1)
    again = wait_for(lambda: [p for p in cluster.list("pods") if _failures(p) == "1"])[0]
    assert again["metadata"]["annotations"][INDEX] == "0"
    end(cluster, again, 1)
    cluster.wait("job/j", lambda job: job["status"].get("failedIndexes") == "0")
    end(cluster, pods["1"])
    job = finish(cluster, "Failed")
    assert conditions(job)[-1] == ("Failed", "True", "FailedIndexes")
    assert (job["status"]["completedIndexes"], job["status"]["failedIndexes"]) == ("1", "0")
    assert job["status"]["failed"] == 2


def _failures(pod: Object) -> str | None:
    text: str | None = pod["metadata"]["annotations"].get("batch.kubernetes.io/job-index-failure-count")
    return text


def test_success_policy_ends_the_other_pods(cluster: Cluster) -> None:
    policy = {"rules": [{"succeededIndexes": "0"}]}
    create(cluster, completions=3, parallelism=3, completionMode="Indexed", successPolicy=policy)
    end(cluster, by_index(active(cluster, 3))["0"])
    job = finish(cluster, "Complete")
    assert conditions(job) == [
        ("SuccessCriteriaMet", "True", "SuccessPolicy"),
        ("Complete", "True", "SuccessPolicy"),
    ]
    assert job["status"]["succeeded"] == 1
    assert "failed" not in job["status"]
    active(cluster, 0)


def test_pod_failure_policy_fails_the_job(cluster: Cluster) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    create(cluster, completions=2, parallelism=2, backoffLimit=6, podFailurePolicy={"rules": [rule]})
    pods = active(cluster, 2)
    end(cluster, pods[0], 42)
    job = finish(cluster, "Failed")
    name = pods[0]["metadata"]["name"]
    assert job["status"]["conditions"][-1]["message"] == (
        f"Container c for pod default/{name} failed with exit code 42 matching FailJob rule at index 0"
    )
    assert conditions(job)[-1] == ("Failed", "True", "PodFailurePolicy")


def test_matching_orphans_are_adopted_and_others_released(cluster: Cluster) -> None:
    labels = {"app": "x"}
    selector: Object = {"manualSelector": True, "selector": {"matchLabels": labels}}
    orphan = {
        "metadata": {"name": "orphan", "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i"}], "schedulerName": "none"},
    }
    cluster.request("POST", PODS, orphan)
    job = create(cluster, completions=2, parallelism=2, metadata={"labels": labels}, **selector)
    pods = {pod["metadata"]["name"]: pod for pod in active(cluster, 2)}

    def adopted() -> bool:
        metadata = cluster.get("pod/orphan")["metadata"]
        owners = [owner["uid"] for owner in metadata.get("ownerReferences", ())]
        return owners == [job["metadata"]["uid"]] and metadata.get("finalizers") == [FINALIZER]

    wait_for(adopted)
    other = next(name for name in pods if name != "orphan")
    patch(cluster, f"{PODS}/{other}", {"metadata": {"labels": {"app": None}}})
    released = cluster.wait(f"pod/{other}", lambda pod: "ownerReferences" not in pod["metadata"])
    assert "finalizers" not in released["metadata"]
    active(cluster, 3)


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
def test_deleted_job_releases_its_pods(cluster: Cluster, policy: str) -> None:
    create(cluster, completions=2, parallelism=2)
    active(cluster, 2)
    cluster.delete("job/j", propagationPolicy=policy)
    cluster.wait("job/j", "delete")
    if policy == "Orphan":
        wait_for(lambda: all("finalizers" not in pod["metadata"] for pod in cluster.list("pods")))
        assert len(cluster.list("pods")) == 2
    else:
        wait_for(lambda: not cluster.list("pods"))


def test_job_of_another_controller_is_left_alone(cluster: Cluster) -> None:
    create(cluster, managedBy="example.com/controller")
    create(cluster, "own", managedBy="kubernetes.io/job-controller")
    cluster.wait("job/own", lambda job: job["status"].get("active") == 1)
    assert len(cluster.list("pods")) == 1
    assert cluster.get("job/j")["status"] == {}


def test_rejected_pods_are_reported(cluster: Cluster) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}
    cluster.request("POST", "/api/v1/namespaces/default/resourcequotas", quota)
    cluster.wait("resourcequota/q", lambda held: "hard" in held["status"])
    create(cluster)

    def reported() -> list[str]:
        found = [message for _, reason, message in events(cluster) if reason == "FailedCreate"]
        return [message for message in found if "exceeded quota: q" in message]

    assert wait_for(reported)[0].startswith('Error creating: pods "j-')
    cluster.delete("resourcequota/q")
    active(cluster, 1)


def test_counters_of_many_pods_are_exact(cluster: Cluster) -> None:
    create(cluster, completions=40, parallelism=40, backoffLimit=99)
    for number, pod in enumerate(active(cluster, 40)):
        end(cluster, pod, int(number % 4 == 0))
    cluster.wait("job/j", lambda job: job["status"].get("failed") == 10)
    for pod in active(cluster, 10):
        end(cluster, pod)
    job = finish(cluster, "Complete")
    assert (job["status"]["succeeded"], job["status"]["failed"]) == (40, 10)
