"""Kubelet of simulated nodes, as the subresources of pods see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context
    from kubist.base.http.messages import Answer

SIMULATED_LABEL = "kubist.io/simulated"
"""Label of a simulated Node; its value is `true`."""


class Kubelet(Protocol):
    """Answers requests that kube-apiserver passes on to a kubelet. The requests are validated and authorized.
    `kubist.cluster.simulation.kubelet_api` implements it."""

    async def logs(self, ctx: Context, pod: Object, container: str) -> Answer: ...

    async def exec(self, ctx: Context, pod: Object, container: str) -> Answer: ...

    async def attach(self, ctx: Context, pod: Object, container: str) -> Answer: ...

    async def port_forward(self, ctx: Context, pod: Object) -> Answer: ...

    async def proxy(self, ctx: Context, pod: Object, port: int) -> Answer:
        """Answers an HTTP request to a port of the pod."""
        ...


def is_simulated(node: Object) -> bool:
    return bool((node["metadata"].get("labels") or {}).get(SIMULATED_LABEL) == "true")
