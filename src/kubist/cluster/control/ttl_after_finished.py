"""TTL-after-finished controller: deletes finished Jobs after `ttlSecondsAfterFinished`, with foreground propagation."""

from __future__ import annotations

from kubist.base import clock
from kubist.cluster.control.loop import Loop
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.model.meta.times import parse_time
from kubist.storage.cache.cache import Change


class TTLAfterFinished(Loop):
    name = "ttl-after-finished"

    def follow(self) -> None:
        self.watch("jobs", self._job_changed, group="batch")

    def _job_changed(self, change: Change) -> None:
        if change.new is not None and b'"ttlSecondsAfterFinished":' in change.new.tail:
            self.enqueue(change)

    async def reconcile(self, key: tuple[str, str]) -> None:
        namespace, name = key
        job = self.client.get("jobs", name, namespace, group="batch")
        if job is None or "deletionTimestamp" in job["metadata"]:
            return
        ended, ttl = finish_time(job), job["spec"].get("ttlSecondsAfterFinished")
        if ended is None or ttl is None:
            return
        left = ended + ttl - clock.now()
        if left > 0:
            self.queue.add_after(key, left)
            return
        metadata = job["metadata"]
        conditions = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        try:
            await self.client.delete(
                "jobs",
                name,
                namespace,
                group="batch",
                propagationPolicy="Foreground",
                preconditions=conditions,
            )
        except APIError as error:
            if error.code != 404:
                raise


def finish_time(job: Object) -> int | None:
    """Time in Unix seconds at which a Job completed or failed; None while it runs."""
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
            return parse_time(condition["lastTransitionTime"])
    return None
