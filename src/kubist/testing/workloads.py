"""Simulated pods and nodes of a cluster, scripted by a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from kubist.model.meta.object import Object

if TYPE_CHECKING:
    # Saves start-up time: few clusters have workloads.
    from kubist.cluster.simulation.kubelet_api.api import KubeletAPI
    from kubist.cluster.simulation.kubelet_api.handlers import ExecHandler, LogHandler
    from kubist.testing.cluster import Cluster

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

Request = Callable[..., Object]
Names = list[str]


class Pods:
    """Simulated pods of a namespace: `cluster.pods("app=web").fail(exit_code=3)`.

    Every method returns the names of the pods that it changed. Their status follows within moments, so wait for it.
    """

    def __init__(self, request: Request, namespace: str, selector: str = "", name: str = "") -> None:
        self._request = request
        self._chosen = {"namespace": namespace}
        if name:
            self._chosen["name"] = name
        elif selector:
            self._chosen["labelSelector"] = selector

    def __repr__(self) -> str:
        return f"<pods {', '.join(f'{key} {value}' for key, value in self._chosen.items())}>"

    def fail(self, *, exit_code: int = 1, reason: str = "", message: str = "", container: str = "") -> Names:
        """Ends running containers with an exit code. The restart policy decides what follows."""
        values = {"exitCode": exit_code, "reason": reason, "message": message}
        return self._ask("fail", container, {key: value for key, value in values.items() if value})

    def succeed(self, *, container: str = "") -> Names:
        """Ends running containers with exit code 0. The restart policy decides what follows."""
        return self._ask("succeed", container, {})

    def crash_loop(self, *, exit_code: int = 1, container: str = "") -> Names:
        """Makes containers fail now and after every restart, until `outcome("")`."""
        return self._ask("crash-loop", container, {"exitCode": exit_code})

    def ready(self, ready: bool = True, *, container: str = "") -> Names:
        """Makes containers ready or not, also after a restart."""
        return self._ask("ready", container, {"ready": ready})

    def outcome(self, text: str, *, container: str = "") -> Names:
        """Sets the outcome annotation, such as `"fail 3 after 10s"`. An empty text removes it."""
        return self._ask("outcome", container, {"outcome": text})

    def usage(self, *, cpu: str = "", memory: str = "", container: str = "") -> Names:
        """Sets the usage that `kubectl top` and the HorizontalPodAutoscaler see."""
        values = {"cpu": cpu, "memory": memory}
        return self._ask("usage", container, {key: value for key, value in values.items() if value})

    def _ask(self, operation: str, container: str, values: Object) -> Names:
        body = {**self._chosen, **values}
        if container:
            body["container"] = container
        return _names(self._request("POST", f"/kubist/v1/pods/{operation}", body))


class Node:
    """A simulated node: `cluster.node("kubist-node-0").not_ready()`."""

    def __init__(self, request: Request, name: str) -> None:
        self._request = request
        self.name = name

    def __repr__(self) -> str:
        return f"<node {self.name}>"

    def not_ready(self) -> None:
        """The kubelet reports that the node is not ready, and leaves its pods alone."""
        self._ask("not-ready")

    def unreachable(self) -> None:
        """The kubelet is silent: it renews no Lease and reports nothing."""
        self._ask("unreachable")

    def ready(self) -> None:
        """The node is healthy again."""
        self._ask("ready")

    def _ask(self, operation: str) -> None:
        self._request("POST", f"/kubist/v1/nodes/{operation}", {"name": self.name})


def _names(answer: Object) -> Names:
    return [item["name"] for item in answer["items"]]


class SimulatedWorkloads:
    """Members of a cluster that script its simulated pods and nodes."""

    @property
    def _cluster(self) -> Cluster:
        raise NotImplementedError

    def on_exec(
        self, selector: str = "", *, namespace: str | None = None
    ) -> Callable[[ExecHandler], ExecHandler]:
        """Decorator: the function answers exec and attach in pods with these labels, in one or all namespaces."""

        def register(function: ExecHandler) -> ExecHandler:
            self._kubelet("on_exec").handlers.on_exec(selector, namespace, function)
            return function

        return register

    def on_logs(
        self, selector: str = "", *, namespace: str | None = None
    ) -> Callable[[LogHandler], LogHandler]:
        """Decorator: the function returns the logs of pods with these labels, in one or all namespaces."""

        def register(function: LogHandler) -> LogHandler:
            self._kubelet("on_logs").handlers.on_logs(selector, namespace, function)
            return function

        return register

    def _kubelet(self, used_by: str) -> KubeletAPI:
        kubelet = self._cluster.inner.api.kubelet
        if kubelet is None:
            raise RuntimeError(
                f"cluster.{used_by} needs simulated pods: use @pytest.mark.kubist(workloads=True)"
            )
        return cast("KubeletAPI", kubelet)

    def pods(self, selector: str = "", namespace: str = "default") -> Pods:
        """Simulated pods with these labels, to script them: `cluster.pods("app=web").fail(exit_code=3)`."""
        return Pods(self._cluster.request, namespace, selector)

    def pod(self, name: str, namespace: str = "default") -> Pods:
        """One simulated pod, to script it."""
        return Pods(self._cluster.request, namespace, name=name)

    def node(self, name: str) -> Node:
        """A simulated node: `cluster.node("kubist-node-0").not_ready()`."""
        return Node(self._cluster.request, name)
