"""Jobs and pods for tests of the Job controller's decisions."""

from __future__ import annotations

import itertools
from typing import Any

from kubist.cluster.control.workloads.job_pods import FINALIZER, INDEX, INDEX_FAILURES
from kubist.model.meta.object import Object
from kubist.model.meta.times import format_time

NOW = 1_800_000_000
_numbers = itertools.count()


def job(completions: int | None = 1, *, status: Object | None = None, **spec: Any) -> Object:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c"}], "restartPolicy": "Never"},
    }
    whole: Object = {
        "parallelism": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "podReplacementPolicy": "TerminatingOrFailed",
        "template": template,
        **spec,
    }
    if completions is not None:
        whole["completions"] = completions
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default", "uid": "job"},
        "spec": whole,
        "status": {"startTime": format_time(NOW), **(status or {})},
    }


def indexed(completions: int, **spec: Any) -> Object:
    return job(completions, completionMode="Indexed", **{"parallelism": completions, **spec})


def pod(
    phase: str = "Running",
    *,
    index: int | None = None,
    failures: int | None = None,
    tracked: bool = True,
    deleted: bool = False,
    finished: float = 0,
    exit_code: int = 1,
    ready: bool = False,
    conditions: tuple[tuple[str, str], ...] = (),
    **parts: Any,
) -> Object:
    """Pod in a phase. `finished` are seconds after NOW."""
    number = next(_numbers)
    metadata: Object = {
        "name": f"p{number}",
        "namespace": "default",
        "uid": f"u{number}",
        "creationTimestamp": format_time(NOW),
        "finalizers": [FINALIZER] if tracked else [],
        "annotations": {},
    }
    if index is not None:
        metadata["annotations"][INDEX] = str(index)
    if failures is not None:
        metadata["annotations"][INDEX_FAILURES] = str(failures)
    if deleted:
        metadata |= {"deletionTimestamp": format_time(NOW + 30), "deletionGracePeriodSeconds": 30}
    status: Object = {"phase": phase}
    if phase in ("Succeeded", "Failed"):
        code = exit_code if phase == "Failed" else 0
        ended = {"exitCode": code, "finishedAt": format_time(int(NOW + finished))}
        status["containerStatuses"] = [{"name": "c", "state": {"terminated": ended}}]
    status["conditions"] = [{"type": kind, "status": state} for kind, state in conditions]
    if ready:
        status["conditions"].append({"type": "Ready", "status": "True"})
    return {"metadata": metadata, "spec": {"containers": [{"name": "c"}], **parts}, "status": status}
