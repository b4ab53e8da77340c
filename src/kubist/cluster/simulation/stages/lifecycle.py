"""Stages of one resource: which one comes next for an object, and whether they drive it."""

from __future__ import annotations

from collections.abc import Iterable

from kubist.cluster.simulation.stages.expressions import Subject
from kubist.cluster.simulation.stages.limits import StageError
from kubist.cluster.simulation.stages.stage import Stage
from kubist.model.meta.object import Object


class Lifecycle:
    def __init__(self, stages: Iterable[Stage]) -> None:
        self.stages = tuple(
            sorted((stage for stage in stages if stage.selects), key=lambda stage: stage.name)
        )

    def matches(self, subject: Subject) -> bool:
        """Whether any Stage selects the object."""
        return any(stage.matches(subject) for stage in self.stages)

    def next(self, subject: Subject) -> Stage | None:
        """The Stage for an object: of those that select it, one at random by weight. Stages without a weight count
        only if none has one; weights of zero only if all are zero."""
        matching = [stage for stage in self.stages if stage.matches(subject)]
        if len(matching) < 2:
            return matching[0] if matching else None
        weights = [_weight(stage, subject) for stage in matching]
        total = sum(max(weight or 0, 0) for weight in weights)
        if total:
            return subject.random.choices(matching, [max(weight or 0, 0) for weight in weights])[0]
        weighed = [stage for stage, weight in zip(matching, weights, strict=True) if weight is not None]
        return subject.random.choice(weighed or matching)

    def drives(self, resource: str, subject: Subject) -> bool:
        """Whether the Stages drive a pod, node or claim from the start: one of them selects it as it was when new.
        A pod that is being deleted must also be selected by one of them, at the latest when its finalizers are gone;
        otherwise it would stay forever."""
        obj = subject.obj
        now, random = subject.now, subject.random
        if not self.matches(Subject(as_new(resource, obj), now, random)):
            return False
        if "deletionTimestamp" not in obj["metadata"]:
            return True
        metadata = {key: value for key, value in obj["metadata"].items() if key != "finalizers"}
        return self.matches(subject) or self.matches(Subject({**obj, "metadata": metadata}, now, random))


def _weight(stage: Stage, subject: Subject) -> int | None:
    """Weight of a Stage; None if it has none or its expression fails."""
    try:
        return stage.weight(subject)
    except StageError:
        return None


def as_new(resource: str, obj: Object) -> Object:
    """A pod, node or claim as it was before anybody wrote its status."""
    gone = ("deletionTimestamp", "deletionGracePeriodSeconds")
    metadata = {key: value for key, value in obj["metadata"].items() if key not in gone}
    status = obj.get("status") or {}
    if resource == "nodes":
        status = {key: value for key, value in status.items() if key not in ("conditions", "phase")}
    elif resource == "persistentvolumeclaims":
        status = {"phase": "Pending"}
        spec = {key: value for key, value in obj["spec"].items() if key != "volumeName"}
        return {**obj, "metadata": metadata, "spec": spec, "status": status}
    else:
        conditions = [one for one in status.get("conditions") or () if one.get("type") == "PodScheduled"]
        status = {"phase": "Pending", **({"conditions": conditions} if conditions else {})}
    return {**obj, "metadata": metadata, "status": status}
