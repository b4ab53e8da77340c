"""PodResizeValidator: a pod may only be resized on a Linux node, and only up to the node's allocatable resources."""

from __future__ import annotations

from kubist.api.admission import amounts
from kubist.api.admission.plugin import UPDATE, Plugin, forbidden
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import at
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import ZERO


class PodResizeValidator(Plugin):
    resources = ("pods/resize",)
    operations = (UPDATE,)

    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None and old is not None
        name = new["spec"].get("nodeName")
        if not name or new["metadata"].get("generation") == old["metadata"].get("generation"):
            return
        node = ctx.objects.get("nodes", name)
        if node is None:
            raise forbidden(ctx, new, f'node "{name}" not found')
        system = (node["metadata"].get("labels") or {}).get("kubernetes.io/os", "linux")
        if system != "linux":
            why = f'pod resize is only supported on linux nodes, node "{name}" is "{system}"'
            raise _refused(ctx, new, why, "UnsupportedPlatform")
        lacking = _lacking(new, node)
        if lacking:
            why = f"node didn't have enough allocatable resources: {'; '.join(lacking)}"
            raise _refused(ctx, new, why, "NodeCapacity")


def _lacking(pod: Object, node: Object) -> list[str]:
    """Resources of the pod that exceed the node's allocatable resources."""
    allocatable = amounts.read(at(node, "status.allocatable"))
    requests = amounts.pod_requests(pod)
    shortages = []
    cpu, available = requests.get("cpu", ZERO), allocatable.get("cpu", ZERO)
    if cpu > available:
        shortages.append(f"cpu, requested: {cpu.milli_value()}, allocatable: {available.milli_value()}")
    memory, available = requests.get("memory", ZERO), allocatable.get("memory", ZERO)
    if memory > available:
        shortages.append(f"memory, requested: {memory.value()}, allocatable: {available.value()}")
    return shortages


def _refused(ctx: Context, new: Object, why: str, reason: str) -> status.APIError:
    error = forbidden(ctx, new, why)
    assert error.details is not None
    error.details["causes"] = [{"reason": reason}]
    return error
