"""Grammar of outcome annotations."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from kubist.cluster.simulation.outcomes import (
    DEFAULT,
    MOST_PROBLEMS,
    Exit,
    Outcome,
    outcome_of,
    own_outcome_of,
    parse_outcome,
    problems,
)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("run", Outcome(runs=True)),
        ("succeed", Outcome(Exit(0))),
        ("succeed after 1.5s", Outcome(Exit(0, after=1.5))),
        ("fail", Outcome(Exit(1))),
        ("fail 3 after 2m times 2", Outcome(Exit(3, after=120, times=2))),
        ("fail 9 reason Oops", Outcome(Exit(9, "Oops"))),
        ("Crash-Loop", Outcome(Exit(1))),
        ("crashloop 7 after 1s", Outcome(Exit(7, after=1))),
        ("oomkilled", Outcome(Exit(137, "OOMKilled"))),
        ("ErrImagePull", Outcome(start="ErrImagePull")),
        ("ImagePullBackOff", Outcome(start="ErrImagePull")),
        ("CreateContainerConfigError", Outcome(start="CreateContainerConfigError")),
        ("never-ready", Outcome(ready_after=math.inf)),
        ("ready after 5s", Outcome(ready_after=5)),
        ("slow-termination 20s", Outcome(stops_after=20)),
        ("evicted after 1m", Outcome(evicted_after=60)),
        ("ready after 1s , fail 2 after 3s", Outcome(Exit(2, after=3), ready_after=1)),
    ],
)
def test_outcome_is_read_and_written_back(text: str, outcome: Outcome) -> None:
    assert parse_outcome(text) == outcome
    assert parse_outcome(str(outcome)) == outcome


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "a clause is empty"),
        ("succeed,", "a clause is empty"),
        ("faill", '"faill" is not an outcome; did you mean "fail"?'),
        ("fail 256", '"256" is not an exit code from 1 to 255 of fail'),
        ("fail 0", "exit code from 1 to 255"),
        ("fail after", 'fail needs one value of "after"'),
        ("fail after 1s after 2s", 'fail needs one value of "after"'),
        ("fail after soon", '"soon" is not a duration'),
        ("fail after -1s", '"-1s" is not a duration'),
        ("fail times 0", "number of runs"),
        ("fail reason 1x", "is not a reason"),
        ("succeed 3", '"3" cannot follow succeed; expected "after"'),
        ("run now", '"now" cannot follow run; expected nothing'),
        ("ready", "ready needs a delay"),
        ("slow-termination", "slow-termination needs one duration"),
        ("succeed, fail", '"fail" contradicts an earlier clause'),
        ("ErrImagePull, run", '"run" contradicts an earlier clause'),
        ("crash-loop times 3", "use fail for the rest"),
        ("fail " + "9" * 5000, "is not an exit code"),
    ],
)
def test_malformed_outcome_is_rejected_with_a_reason(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=re.escape(fault)):
        parse_outcome(text)


def pod(**annotations: str) -> dict[str, Any]:
    keys = {
        key.replace("__", ".").replace("outcome", "kubist.io/outcome"): text
        for key, text in annotations.items()
    }
    spec = {"containers": [{"name": "web"}, {"name": "log"}], "initContainers": [{"name": "setup"}]}
    return {"metadata": {"annotations": keys}, "spec": spec}


def test_container_annotation_replaces_the_annotation_of_the_pod() -> None:
    held = pod(outcome="fail 2", outcome__web="run")
    assert outcome_of(held, "web") == Outcome(runs=True)
    assert outcome_of(held, "log") == Outcome(Exit(2))


def test_annotation_of_the_pod_does_not_count_for_init_containers() -> None:
    assert own_outcome_of(pod(outcome="fail 2"), "setup") == DEFAULT
    assert own_outcome_of(pod(outcome__setup="fail 2"), "setup") == Outcome(Exit(2))


def test_problems_name_the_annotation() -> None:
    assert problems(pod(outcome="run", outcome__web="succeed")) == []
    assert problems({"metadata": {}, "spec": {}}) == []
    (fault,) = problems(pod(outcome__web="nope"))
    assert fault == 'annotation kubist.io/outcome.web: "nope" is not an outcome'
    (fault,) = problems(pod(outcome__webb="run"))
    assert fault == 'annotation kubist.io/outcome.webb: the pod has no container "webb"; did you mean "web"?'
    (fault,) = problems(pod(outcome__web="evicted"))
    assert "only the whole pod can be evicted" in fault


def test_malformed_annotation_counts_as_absent() -> None:
    assert outcome_of(pod(outcome="nope"), "web") == DEFAULT


def test_number_of_problems_is_limited() -> None:
    """Similar names are not searched for thousands of annotations."""
    annotated = pod(**{f"outcome__wrong-{number}": "run" for number in range(5_000)})
    annotated["spec"]["containers"] += [{"name": f"container-{number}"} for number in range(5_000)]
    assert len(problems(annotated)) == MOST_PROBLEMS


@pytest.mark.parametrize("text", ["x" * 200_000, "fail " + "9" * 200_000, "run," + "run " * 50_000])
def test_messages_about_long_annotations_are_short(text: str) -> None:
    (message,) = problems(pod(outcome=text))
    assert len(message) < 500
