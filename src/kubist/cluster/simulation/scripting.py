"""Operations on simulated pods: end their containers now, and change their outcome and usage annotations.

Everything is kept in the pod itself: an ended container in its status, the rest in its annotations.
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
    """Names of the containers that an operation is about: one, or all regular ones."""
    if not container:
        return [held["name"] for held in pod["spec"]["containers"]]
    parts = ("initContainers", "containers", "ephemeralContainers")
    known = (held["name"] for part in parts for held in pod["spec"].get(part) or ())
    return [container] if container in known else []


async def end_now(client: ObjectClient, pod: Object, container: str, run: Run) -> bool:
    """Ends the running containers of a pod. The restart policy then decides. Whether one of them ran."""

    def edit(held: Object) -> Object | None:
        status = end_containers(held, container_names(held, container), run, client.clock.now())
        if status is None:
            return None
        held["status"] = status
        return held

    return bool(await _update(client.acting_as(KUBELET), pod, edit, "status"))


async def change_outcome(client: ObjectClient, pod: Object, container: str, change: Change) -> None:
    """Changes the outcome of one container, or of the pod and all containers with an outcome of their own."""

    def edit(held: Object) -> Object:
        annotations = held["metadata"].setdefault("annotations", {})
        keys = [f"{ANNOTATION}.{container}"] if container else [ANNOTATION]
        if not container:
            own = (f"{ANNOTATION}.{name}" for name in container_names(held, ""))
            keys += [key for key in own if key in annotations]
        for key in keys:
            new = str(
                change(_outcome(annotations.get(key, annotations.get(ANNOTATION) if container else None)))
            )
            if new:
                annotations[key] = new
            else:
                annotations.pop(key, None)
        return held

    await _update(client.acting_as(SCRIPT), pod, edit)


async def annotate(client: ObjectClient, pod: Object, annotations: dict[str, str]) -> bool:
    """Adds annotations to a pod, which keeps those that it has. Whether it has changed."""

    def edit(held: Object) -> Object:
        held["metadata"]["annotations"] = {**annotations, **(held["metadata"].get("annotations") or {})}
        return held

    return await _update(client.acting_as(SCRIPT), pod, edit) is not None


async def set_ready(client: ObjectClient, pod: Object, container: str, ready: bool) -> None:
    """Makes one container ready or not, or all of a pod."""
    after = None if ready else math.inf
    await change_outcome(client, pod, container, lambda outcome: replace(outcome, ready_after=after))


async def change_usage(client: ObjectClient, pod: Object, container: str, amounts: dict[str, str]) -> None:
    """Sets the usage of one container, or of every container of a pod. Resources that are not given keep theirs."""

    def edit(held: Object) -> Object:
        annotations = held["metadata"].setdefault("annotations", {})
        key = f"{usage.ANNOTATION}.{container}" if container else usage.ANNOTATION
        try:
            known = {
                name: str(amount) for name, amount in usage.parse_usage(annotations.get(key, "")).items()
            }
        except ValueError:
            known = {}
        annotations[key] = ",".join(f"{name}={amount}" for name, amount in (known | amounts).items())
        return held

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

    def edit_same(held: Object) -> Object | None:
        return edit(held) if held["metadata"]["uid"] == metadata["uid"] else None

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
