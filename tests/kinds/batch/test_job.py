"""Job: defaults, generated selectors, policies, and updates of spec and status."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.model.meta.object import Object

START, END = "2024-01-01T00:00:00Z", "2024-01-01T01:00:00Z"


@pytest.fixture
def jobs(kind_of: Any) -> Any:
    return kind_of("batch/v1", "Job")


def job(labels: dict[str, str] | None = None, **spec: Any) -> Object:
    template: Object = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    if labels:
        template["metadata"] = {"labels": labels}
    return {"metadata": {"name": "x", "uid": "8f2b"}, "spec": {"template": template, **spec}}


def true(*types: str) -> list[Object]:
    return [{"type": name, "status": "True"} for name in types]


def test_selector_is_generated_from_the_uid(jobs: Any) -> None:
    new = jobs.stored(job())
    labels = {
        "job-name": "x",
        "batch.kubernetes.io/job-name": "x",
        "controller-uid": "8f2b",
        "batch.kubernetes.io/controller-uid": "8f2b",
    }
    assert new["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "8f2b"}}
    assert new["spec"]["template"]["metadata"]["labels"] == labels
    assert new["metadata"]["labels"] == labels


def test_invalid_generated_labels_are_reported_at_the_template(jobs: Any) -> None:
    long = {**job(), "metadata": {"name": "x" * 64, "uid": "8f2b"}}
    assert jobs.create_errors(long) == [("spec.template.labels", "Invalid")] * 2
    assert "labels" not in jobs.create(long)["metadata"]


def test_job_labels_are_not_extended(jobs: Any) -> None:
    mine = job({"pod": "label"})
    mine["metadata"]["labels"] = {"job": "label"}
    assert jobs.stored(mine)["metadata"]["labels"] == {"job": "label"}


def test_manual_selector_is_kept(jobs: Any) -> None:
    new = jobs.stored(job({"a": "b"}, manualSelector=True, selector={"matchLabels": {"a": "b"}}))
    assert new["spec"]["template"]["metadata"]["labels"] == {"a": "b"}


def test_conflicting_generated_labels_are_rejected(jobs: Any) -> None:
    assert jobs.create_errors(job({"job-name": "other"})) == [
        ("spec.template.metadata.labels[job-name]", "Invalid")
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {"completions": 1, "parallelism": 1, "backoffLimit": 6}),
        ({"parallelism": 3}, {"parallelism": 3}),
        ({"completions": 3}, {"completions": 3, "parallelism": 1}),
        (
            {"completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 1},
            {"backoffLimit": 2147483647},
        ),
        ({"podFailurePolicy": {"rules": []}}, {"podReplacementPolicy": "Failed"}),
    ],
)
def test_defaults(jobs: Any, spec: Object, expected: Object) -> None:
    stored = jobs.stored(job(**spec))["spec"]
    assert stored.items() >= expected.items()
    assert ("completions" in stored) is ("completions" in spec or "parallelism" not in spec)


REFUSED = [
    ({"completions": -1, "backoffLimit": -1}, [("completions", "Invalid"), ("backoffLimit", "Invalid")]),
    ({"completionMode": "Sorted"}, [("completionMode", "NotSupported")]),
    ({"completionMode": "Indexed", "parallelism": 1}, [("completions", "Required")]),
    ({"backoffLimitPerIndex": 1}, [("backoffLimitPerIndex", "Invalid")]),
    (
        {"completionMode": "Indexed", "completions": 5, "maxFailedIndexes": 6},
        [("backoffLimitPerIndex", "Required"), ("maxFailedIndexes", "Invalid")],
    ),
    ({"managedBy": "nobody"}, [("managedBy", "Invalid")]),
    ({"managedBy": "acme.io/" + "x" * 60}, [("managedBy", "TooLong")]),
    ({"podReplacementPolicy": "Soon"}, [("podReplacementPolicy", "NotSupported")]),
    (
        {"podFailurePolicy": {"rules": [{"action": "FailIndex", "onExitCodes": {"operator": "In"}}]}},
        [
            ("podFailurePolicy.rules[0].action", "Invalid"),
            ("podFailurePolicy.rules[0].onExitCodes.values", "Invalid"),
        ],
    ),
    ({"podFailurePolicy": {"rules": [{"action": "Count"}]}}, [("podFailurePolicy.rules[0]", "Invalid")]),
    ({"successPolicy": {"rules": []}}, [("successPolicy", "Invalid")]),
    (
        {
            "completionMode": "Indexed",
            "completions": 4,
            "successPolicy": {"rules": [{"succeededIndexes": "0-1,3", "succeededCount": 4}]},
        },
        [("successPolicy.rules[0].succeededCount", "Invalid")],
    ),
]


@pytest.mark.parametrize(("spec", "causes"), REFUSED)
def test_invalid_spec_is_rejected(jobs: Any, spec: Object, causes: list[tuple[str, str]]) -> None:
    assert jobs.create_errors(job(**spec)) == [(f"spec.{field}", reason) for field, reason in causes]


@pytest.mark.parametrize("text", ["", "0", "0,2", "0-1,3", "3"])
def test_valid_indexes_are_accepted(jobs: Any, text: str) -> None:
    policy = {"rules": [{"succeededIndexes": text}]}
    assert jobs.create_errors(job(completionMode="Indexed", completions=4, successPolicy=policy)) == []


@pytest.mark.parametrize("text", ["4", "1,1", "2-1", "1-2-3", "a", "1,", "-1"])
def test_invalid_indexes_are_rejected(jobs: Any, text: str) -> None:
    policy = {"rules": [{"succeededIndexes": text}]}
    causes = jobs.create_errors(job(completionMode="Indexed", completions=4, successPolicy=policy))
    assert causes == [("spec.successPolicy.rules[0].succeededIndexes", "Invalid")]


def test_indexed_pod_name_must_be_a_dns_label(jobs: Any) -> None:
    long = job(completionMode="Indexed", completions=1000)
    long["metadata"]["name"] = "x" * 60
    assert jobs.create_errors(long) == [("metadata.name", "Invalid")]


def set_image(obj: Object) -> None:
    obj["spec"]["template"]["spec"]["containers"][0]["image"] = "other"


def set_node_selector(obj: Object) -> None:
    obj["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}


def set_resources(obj: Object) -> None:
    obj["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "2"}}


def test_template_of_running_job_is_immutable(jobs: Any) -> None:
    old = jobs.stored(job())
    for change in (set_image, set_node_selector, set_resources):
        assert jobs.change_errors(old, change) == [("spec.template", "Invalid")]


def test_suspended_job_allows_scheduling_and_resource_changes(jobs: Any) -> None:
    old = jobs.stored(job(suspend=True))
    assert jobs.change_errors(old, set_node_selector) == []
    assert jobs.change_errors(old, set_resources) == []
    assert jobs.change_errors(old, set_image) == [("spec.template.spec", "Invalid")]
    old["status"] = {"active": 1}
    assert jobs.change_errors(old, set_node_selector) == [("spec.template", "Invalid")]


def test_only_indexed_job_changes_completions_with_parallelism(jobs: Any) -> None:
    plain, indexed = jobs.stored(job()), jobs.stored(job(completionMode="Indexed", completions=2))
    assert jobs.change_errors(plain, lambda obj: obj["spec"].update(completions=2)) == [
        ("spec.completions", "Invalid")
    ]
    assert jobs.change_errors(indexed, lambda obj: obj["spec"].update(completions=3)) == [
        ("spec.completions", "Invalid")
    ]
    assert jobs.change_errors(indexed, lambda obj: obj["spec"].update(completions=3, parallelism=3)) == []


STATUSES: list[tuple[Object, Object, list[tuple[str, str]]]] = [
    ({}, {"active": 2, "ready": 3}, [("ready", "Invalid")]),
    ({}, {"active": -1}, [("active", "Invalid")]),
    ({"ready": 3}, {"ready": 3, "failed": 1}, []),
    ({"failed": 2}, {"failed": 1}, [("failed", "Invalid")]),
    ({"startTime": START}, {"startTime": END}, [("startTime", "Invalid")]),
    ({"startTime": START}, {"startTime": START, "completionTime": END}, [("completionTime", "Invalid")]),
    (
        {"startTime": START},
        {"startTime": START, "conditions": true("Complete", "SuccessCriteriaMet")},
        [("completionTime", "Required")],
    ),
    (
        {"startTime": START},
        {
            "startTime": START,
            "completionTime": END,
            "active": 1,
            "conditions": true("Complete", "SuccessCriteriaMet"),
        },
        [("active", "Invalid")],
    ),
    ({"startTime": START}, {"startTime": START, "conditions": true("Failed")}, [("conditions", "Invalid")]),
    ({}, {"conditions": true("FailureTarget", "Failed")}, [("startTime", "Required")]),
    ({"conditions": true("FailureTarget")}, {}, [("conditions", "Invalid")]),
    ({}, {"completedIndexes": "0"}, [("completedIndexes", "Invalid")]),
    (
        {},
        {"uncountedTerminatedPods": {"succeeded": ["a"], "failed": ["a", ""]}},
        [
            ("uncountedTerminatedPods.failed[0]", "Duplicate"),
            ("uncountedTerminatedPods.failed[1]", "Invalid"),
        ],
    ),
]


@pytest.mark.parametrize(("before", "after", "causes"), STATUSES)
def test_status_changes(jobs: Any, before: Object, after: Object, causes: list[tuple[str, str]]) -> None:
    old = jobs.stored(job()) | {"status": before}
    refused = jobs.change_errors(old, lambda obj: obj.update(status=after), "status")
    assert refused == [(f"status.{field}", reason) for field, reason in causes]


def test_overlapping_indexes_are_rejected(jobs: Any) -> None:
    old = jobs.stored(job(completionMode="Indexed", completions=9, backoffLimitPerIndex=1))
    status = {"completedIndexes": "0-3,6", "failedIndexes": "4,6-7"}
    causes = jobs.change_errors(old, lambda obj: obj.update(status=status), "status")
    assert causes == [("status.failedIndexes", "Invalid")]


def test_deleting_without_a_policy_warns(jobs: Any) -> None:
    warnings: list[str] = []
    jobs.context.warn = warnings.append
    jobs.strategy.before_delete(jobs.context, "x", "Orphan")
    assert warnings == []
    jobs.strategy.before_delete(jobs.context, "x", "")
    assert len(warnings) == 1


def test_status_successful_is_selectable(jobs: Any) -> None:
    new = jobs.stored(job())
    assert jobs.strategy.selectable_fields(new) == {"status.successful": "0"}
    new["status"]["succeeded"] = 3
    assert jobs.strategy.selectable_fields(new) == {"status.successful": "3"}
