"""Stages of KWOK: which objects they select, their weights and delays, and which one is next for an object."""

from __future__ import annotations

from collections.abc import Iterable

from kubist.cluster.simulation.stages.expressions import Condition, Requirement, Source, Subject
from kubist.cluster.simulation.stages.fields import Fields
from kubist.cluster.simulation.stages.limits import StageError
from kubist.cluster.simulation.stages.steps import parse_next
from kubist.cluster.simulation.stages.watcher import API_VERSION
from kubist.model.meta.object import Object

KIND = "Stage"


class Stage:
    """A parsed Stage. StageError if a field cannot be used."""

    def __init__(self, obj: Object) -> None:
        if obj.get("apiVersion") != API_VERSION or obj.get("kind") != KIND:
            raise StageError(f"not a {KIND} of {API_VERSION}")
        name = (obj.get("metadata") or {}).get("name")
        if not isinstance(name, str) or not name:
            raise StageError("metadata.name: must be a string")
        self.name = name
        self.object = obj
        spec = Fields("spec", obj.get("spec"))
        reference = spec.fields("resourceRef")
        if reference is None:
            raise StageError("spec.resourceRef: required")
        self.api_version = reference.text("apiGroup") or "v1"
        self.kind = reference.text("kind")
        if not self.kind:
            raise StageError("spec.resourceRef.kind: required")
        reference.finish()
        self._labels: dict[str, str] | None = None
        self._annotations: dict[str, str] | None = None
        self._requirements: list[Requirement | Condition] = []
        self.selects = self._read_selector(spec.fields("selector"))
        """Whether there is a selector. A Stage without one selects nothing."""
        self._weight = spec.count("weight") or 0
        self._weight_from = _source(spec.fields("weightFrom"))
        self._read_delay(spec.fields("delay"))
        spec.boolean("immediateNextStage")  # without effect, because the next Stage always comes at once
        self.steps = parse_next(spec, (self.api_version, self.kind))
        spec.finish()

    def _read_selector(self, selector: Fields | None) -> bool:
        if selector is None:
            return False
        self._labels = selector.pairs("matchLabels")
        self._annotations = selector.pairs("matchAnnotations")
        for item in selector.items("matchExpressions"):
            self._requirements.append(_requirement(item))
        selector.finish()
        return True

    def _read_delay(self, delay: Fields | None) -> None:
        self._duration: float | None = None
        self._duration_from: Source | None = None
        self._jitter: float | None = None
        self._jitter_from: Source | None = None
        if delay is None:
            return
        self._duration = (delay.count("durationMilliseconds") or 0) / 1000
        self._duration_from = _source(delay.fields("durationFrom"))
        jitter = delay.count("jitterDurationMilliseconds")
        self._jitter = None if jitter is None else jitter / 1000
        self._jitter_from = _source(delay.fields("jitterDurationFrom"))
        delay.finish()

    def matches(self, subject: Subject) -> bool:
        if not self.selects:
            return False
        metadata = subject.obj.get("metadata") or {}
        for selector, values in (
            (self._labels, metadata.get("labels")),
            (self._annotations, metadata.get("annotations")),
        ):
            if selector and not selector.items() <= (values or {}).items():
                return False
        return all(requirement.matches(subject) for requirement in self._requirements)

    def weight(self, subject: Subject) -> int | None:
        """Weight for an object. None if `weightFrom` gives text that is not a number."""
        if self._weight_from is None:
            return self._weight
        return self._weight_from.integer(subject, self._weight)

    def delay(self, subject: Subject) -> float:
        """Seconds until the steps: the duration, or a random time between it and the jitter duration."""
        if self._duration is None:
            return 0.0
        duration: float | None = self._duration
        if self._duration_from is not None:
            duration = self._duration_from.seconds(subject, self._duration)
        if duration is None:
            return 0.0
        jitter = self._jitter
        if self._jitter_from is not None:
            jitter = self._jitter_from.seconds(subject, self._jitter)
        if jitter is None:
            return max(duration, 0.0)
        if jitter <= duration:
            return max(jitter, 0.0)
        return max(subject.random.uniform(duration, jitter), 0.0)


class Lifecycle:
    """Stages of one resource: the next one for an object, and whether they drive it."""

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
    deletion = ("deletionTimestamp", "deletionGracePeriodSeconds")
    metadata = {key: value for key, value in obj["metadata"].items() if key not in deletion}
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


def _requirement(item: Fields) -> Requirement | Condition:
    """`cel`, `jq`, or key, operator and values in the expression itself, which is the older form."""
    if (cel := item.fields("cel")) is not None:
        condition = cel.parse("expression", Condition)
        cel.finish()
        item.finish()
        return condition
    jq = item.fields("jq")
    holder = item if jq is None else jq
    if not holder.get("key"):
        raise holder.error("key", "required")
    operator, values = holder.text("operator"), holder.texts("values")
    requirement = holder.parse("key", lambda key: Requirement(key, operator, values))
    holder.finish()
    item.finish()
    return requirement


def _source(source: Fields | None) -> Source | None:
    if source is None:
        return None
    if (cel := source.fields("cel")) is not None:
        expression = cel.parse("expression", lambda text: Source(cel=text))
        cel.finish()
    elif (jq := source.fields("jq")) is not None:
        expression = jq.parse("expression", lambda text: Source(jq=text))
        jq.finish()
    else:
        expression = source.parse("expressionFrom", lambda text: Source(jq=text))
    source.finish()
    return expression
