"""Simulated pods and nodes of a cluster, scripted by a test."""

from __future__ import annotations

from collections.abc import Callable

from kubist.meta.object import Object

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
        given = {"exitCode": exit_code, "reason": reason, "message": message}
        return self._ask("fail", container, {key: value for key, value in given.items() if value})

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
        """Sets the outcome annotation, such as `"fail 3 after 10s"`. An empty text restores the default."""
        return self._ask("outcome", container, {"outcome": text})

    def usage(self, *, cpu: str = "", memory: str = "", container: str = "") -> Names:
        """Sets the usage that `kubectl top` and the HorizontalPodAutoscaler see."""
        given = {"cpu": cpu, "memory": memory}
        return self._ask("usage", container, {key: value for key, value in given.items() if value})

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
