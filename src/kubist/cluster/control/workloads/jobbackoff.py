"""Back-off between failed pods of a Job: 10 seconds after the first failure, doubled up to 10 minutes."""

from __future__ import annotations

from typing import NamedTuple

from kubist.model.meta.conditions import find
from kubist.model.meta.object import Object
from kubist.model.meta.times import parse_time

FIRST_SECONDS = 10.0
LONGEST_SECONDS = 600.0


class Backoff(NamedTuple):
    """Failures since the last success of a Job."""

    failures: int = 0
    last_failure: float = 0.0

    def after(self, succeeded: list[Object], failed: list[Object]) -> Backoff:
        """Back-off after further pods have finished."""
        times = sorted(finish_time(pod) for pod in failed)
        if succeeded:
            last_success = max(finish_time(pod) for pod in succeeded)
            times = [time for time in times if time > last_success]
            return Backoff(len(times), times[-1]) if times else Backoff()
        return Backoff(self.failures + len(times), times[-1]) if times else self

    def remaining(self, now: float) -> float:
        return remaining(self.failures, self.last_failure, now)


def remaining(failures: int, last_failure: float, now: float) -> float:
    """Seconds until the next pod may be created."""
    if not failures:
        return 0.0
    delay = min(FIRST_SECONDS * 2.0 ** min(failures - 1, 30), LONGEST_SECONDS)
    return max(last_failure + delay - now, 0.0)


def finish_time(pod: Object) -> int:
    """Time at which a pod finished, by its containers, its Ready condition, its deletion or else its creation."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    ended = _containers_finished(pod)
    if ended is not None:
        return ended
    ready = find(status.get("conditions"), "Ready")
    if ready is not None and ready.get("status") == "False" and ready.get("lastTransitionTime"):
        return parse_time(ready["lastTransitionTime"])
    if "deletionTimestamp" in metadata:
        return parse_time(metadata["deletionTimestamp"]) - (metadata.get("deletionGracePeriodSeconds") or 0)
    return parse_time(metadata["creationTimestamp"])


def _containers_finished(pod: Object) -> int | None:
    """Time at which the last container or sidecar ended. None if one of them has not ended."""
    status = pod.get("status") or {}
    sidecars = {
        container["name"]
        for container in pod["spec"].get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }
    held = [*(status.get("containerStatuses") or ())]
    held += [one for one in status.get("initContainerStatuses") or () if one["name"] in sidecars]
    times = [((one.get("state") or {}).get("terminated") or {}).get("finishedAt", "") for one in held]
    return max(map(parse_time, times)) if times and all(times) else None
