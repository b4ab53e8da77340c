"""Operations on simulated pods: end their containers now, and change their outcome and usage annotations.

All state is kept in the pod itself: an ended container in its status, everything else in its annotations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

from kubist.api.object_client import Actor, ObjectClient
from kubist.api.resources.context import User
from kubist.cluster.control import usage
from kubist.cluster.simulation.actors import KUBELET
from kubist.cluster.simulation.commands import Run
from kubist.cluster.simulation.outcomes import ANNOTATION, DEFAULT, Outcome, parse_outcome
from kubist.cluster.simulation.pod_machine import end_containers
from kubist.model.meta.object import Object

SCRIPT = Actor(
    User("system:kubist-test-bench", groups=("system:masters", "system:authenticated")),
    "kubist",
    admission=True,
)

Change = Callable[[Outcome], Outcome]


def container_names(pod: Object, container: str) -> list[str]:
    """Names of the containers that an operation concerns: one, or all regular ones."""
    if not container:
        return [entry["name"] for entry in pod["spec"]["containers"]]
    parts = ("initContainers", "containers", "ephemeralContainers")
    known = (entry["name"] for part in parts for entry in pod["spec"].get(part) or ())
    return [container] if container in known else []


async def end_now(client: ObjectClient, pod: Object, container: str, run: Run) -> bool:
    """Ends the running containers of a pod. The restart policy then decides. Returns whether one of them ran."""

    def edit(current: Object) -> Object | None:
        status = end_containers(current, container_names(current, container), run, client.clock.now())
        if status is None:
            return None
        current["status"] = status
        return current

    return bool(await _update(client.acting_as(KUBELET), pod, edit, "status"))


async def change_outcome(client: ObjectClient, pod: Object, container: str, change: Change) -> None:
    """Changes the outcome of one container, or of the pod and all containers with an outcome of their own."""

    def edit(current: Object) -> Object:
        annotations = current["metadata"].setdefault("annotations", {})
        keys = [f"{ANNOTATION}.{container}"] if container else [ANNOTATION]
        if not container:
            own = (f"{ANNOTATION}.{name}" for name in container_names(current, ""))
            keys += [key for key in own if key in annotations]
        for key in keys:
            new = str(
                change(_outcome(annotations.get(key, annotations.get(ANNOTATION) if container else None)))
            )
            if new:
                annotations[key] = new
            else:
                annotations.pop(key, None)
        return current

    await _update(client.acting_as(SCRIPT), pod, edit)


async def annotate(client: ObjectClient, pod: Object, annotations: dict[str, str]) -> bool:
    """Adds annotations to a pod, which keeps those that it has. Returns whether it has changed."""

    def edit(current: Object) -> Object:
        current["metadata"]["annotations"] = {**annotations, **(current["metadata"].get("annotations") or {})}
        return current

    return await _update(client.acting_as(SCRIPT), pod, edit) is not None


async def set_ready(client: ObjectClient, pod: Object, container: str, ready: bool) -> None:
    """Makes one container ready or not, or all of a pod."""
    after = None if ready else math.inf
    await change_outcome(client, pod, container, lambda outcome: replace(outcome, ready_after=after))


async def change_usage(client: ObjectClient, pod: Object, container: str, amounts: dict[str, str]) -> None:
    """Sets the usage of one container, or of every container of a pod. Resources that are not given keep theirs."""

    def edit(current: Object) -> Object:
        annotations = current["metadata"].setdefault("annotations", {})
        key = f"{usage.ANNOTATION}.{container}" if container else usage.ANNOTATION
        try:
            known = {
                name: str(amount) for name, amount in usage.parse_usage(annotations.get(key, "")).items()
            }
        except ValueError:
            known = {}
        annotations[key] = ",".join(f"{name}={amount}" for name, amount in (known | amounts).items())
        return current

    await _update(client.acting_as(SCRIPT), pod, edit)


def _outcome(text: str | None) -> Outcome:
    try:
        return parse_outcome(text) if text else DEFAULT
    except ValueError:
        return DEFAULT


async def _update(
    client: ObjectClient, pod: Object, edit: Callable[[Object], Object | None], subresource: str = ""
) -> Object | None:
    """Edits a pod, unless another one has its name by now."""
    metadata = pod["metadata"]

    def edit_same(current: Object) -> Object | None:
        return edit(current) if current["metadata"]["uid"] == metadata["uid"] else None

    return await client.update(
        "pods", metadata["name"], metadata["namespace"], edit_same, subresource=subresource
    )


def selected(
    client: ObjectClient, namespace: str, name: str, matches: Callable[[dict[str, str]], bool]
) -> Iterable[Object]:
    """Pods of a namespace with a name, or all that a function of their labels accepts."""
    for entry in client.labelled("pods", namespace):
        if entry.name == name if name else matches(entry.labels):
            yield client.parsed(entry)
