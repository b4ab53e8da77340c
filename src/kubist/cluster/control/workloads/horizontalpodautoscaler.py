"""HorizontalPodAutoscaler controller: scales a target by the simulated usage of its pods, every 15 seconds."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from kubist.api.object_client import ObjectClient
from kubist.api.resources.resource import Resource
from kubist.api.resources.strategy import Scale
from kubist.api.verbs.patch import MERGE
from kubist.cluster.control.loop import Loop, entry_of
from kubist.cluster.control.usage import usage_of
from kubist.cluster.control.workloads.horizontalpodautoscaler_metrics import (
    FailedMetric,
    Target,
    Tolerance,
    compute,
)
from kubist.model.meta.conditions import set_condition
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import parse_quantity
from kubist.model.meta.selectors import LabelSelector, ParseError, parse_label_selector
from kubist.model.meta.status import APIError, not_found
from kubist.storage.cache.cache import Change

SYNC_SECONDS = 15.0
NANO = 10**9
CANNOT_GET = "the HPA controller was unable to get the target's current scale"

Key = tuple[str, str]


class Failure(Exception):
    """Reconciliation that ended early. The conditions of the status give the reason."""


class Scaled(NamedTuple):
    """Scale of a target."""

    resource: Resource
    name: str
    replicas: int
    selector: str


class HorizontalPodAutoscalers(Loop):
    name = "horizontalpodautoscaler"
    component = "horizontal-pod-autoscaler"
    workers = 5

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        self._histories: dict[Key, History] = {}
        self._selectors: dict[Key, LabelSelector] = {}
        """Selectors of the targets, by namespace and name of the autoscaler."""

    def follow(self) -> None:
        self.watch("horizontalpodautoscalers", self._autoscaler_changed, group="autoscaling")

    def _autoscaler_changed(self, change: Change) -> None:
        """Queues new autoscalers. The others are evaluated every SYNC_SECONDS."""
        entry = entry_of(change)
        key = (entry.namespace, entry.name)
        if change.old is None:
            self.queue.add(key)
        elif change.new is None:
            self._forget(key)

    def _forget(self, key: Key) -> None:
        self._histories.pop(key, None)
        self._selectors.pop(key, None)

    async def reconcile(self, key: Key) -> None:
        autoscaler = self.client.get("horizontalpodautoscalers", key[1], key[0], group="autoscaling")
        if autoscaler is None:
            self._forget(key)
            return
        self.queue.add_after(key, SYNC_SECONDS)
        status = autoscaler["status"]
        conditions = [dict(condition) for condition in status.get("conditions") or ()]
        pass_ = Pass(self, key, {**autoscaler, "status": {**status, "conditions": conditions}})
        with contextlib.suppress(Failure):
            await pass_.run()
        await self._write(autoscaler, pass_.autoscaler["status"])

    async def _write(self, autoscaler: Object, status: Object) -> None:
        if status == autoscaler["status"]:
            return
        metadata = autoscaler["metadata"]

        def edit(current: Object) -> Object | None:
            if current["metadata"]["uid"] != metadata["uid"]:
                return None
            current["status"] = status
            return current

        await self.client.update(
            "horizontalpodautoscalers",
            metadata["name"],
            metadata["namespace"],
            edit,
            group="autoscaling",
            subresource="status",
        )

    def history(self, key: Key, replicas: int) -> History:
        """History of an autoscaler. It starts with the present replicas as a recommendation."""
        history = self._histories.get(key)
        if history is None:
            history = self._histories[key] = History([(self.clock.now(), replicas)])
        return history

    def find_scale(self, reference: Object, namespace: str) -> Scaled:
        """Scale of the target. APIError or LookupError if there is none."""
        group, _, _ = reference.get("apiVersion", "").rpartition("/")
        kind, name = reference["kind"], reference["name"]
        versions = self.client.resources.versions(group)
        resources = [match for version in versions if (match := self.client.find_kind(group, version, kind))]
        if not resources:
            raise LookupError(f'no matches for kind "{kind}" in group "{group}"')
        resource = self.client.resource(resources[0].resource, group)
        path = resource.strategy.subresources.get("scale")
        if not isinstance(path, Scale):
            raise LookupError("the server could not find the requested resource")
        obj = self.client.get(resource.resource, name, namespace, group=group)
        if obj is None:
            raise not_found(group, resource.resource, name)
        replicas, _, selector = path.values(obj)
        if replicas is None and resource.custom:
            raise LookupError(
                f'Internal error occurred: the spec replicas field ".{path.spec_replicas}" does not exist'
            )
        return Scaled(resource, name, replicas or 0, selector)

    def pods(self, key: Key, selector: LabelSelector) -> list[Object]:
        """Pods of a target."""
        entries = self.client.labelled("pods", key[0])
        return [self.client.parsed(entry) for entry in entries if selector.matches(entry.labels)]

    def rivals(self, key: Key, selector: LabelSelector, pods: list[Object]) -> list[Key]:
        """All autoscalers that control some of the pods, with this one."""
        self._selectors[key] = selector
        labels = [pod["metadata"].get("labels") for pod in pods]
        return sorted(
            other
            for other, other_selector in self._selectors.items()
            if other[0] == key[0] and any(other_selector.matches(one) for one in labels)
        )


class Pass:
    """One evaluation of one autoscaler. Its status collects the result."""

    def __init__(self, loop: HorizontalPodAutoscalers, key: Key, autoscaler: Object) -> None:
        self.loop = loop
        self.key = key
        self.autoscaler = autoscaler
        self.spec: Object = autoscaler["spec"]
        self.metrics: list[Object] | None = None

    async def run(self) -> None:
        scaled = self._scale()
        current = scaled.replicas
        history = self.loop.history(self.key, current)
        least, most = self.spec.get("minReplicas", 1), self.spec["maxReplicas"]
        reason = ""
        if current == 0:
            desired = 0
            message = "scaling is disabled since the replica count of the target is zero"
            self._set("ScalingActive", "False", "ScalingDisabled", message)
        elif current > most:
            desired, reason = most, "Current number of replicas above Spec.MaxReplicas"
        elif current < least:
            desired, reason = least, "Current number of replicas below Spec.MinReplicas"
        else:
            desired, reason = self._by_metrics(scaled, history)
        is_rescaled = desired != current
        if is_rescaled:
            await self._rescale(scaled, desired, reason)
            if "behavior" in self.spec:
                history.add_change(current, desired, self.loop.clock.now())
        self._finish(current, desired)
        if is_rescaled:
            self.autoscaler["status"]["lastScaleTime"] = self.loop.stamp()

    def _scale(self) -> Scaled:
        try:
            scaled = self.loop.find_scale(self.spec["scaleTargetRef"], self.key[0])
        except (APIError, LookupError) as error:
            why = str(error.args[0])
            self._emit("Warning", "FailedGetScale", why)
            self._set("AbleToScale", "False", "FailedGetScale", f"{CANNOT_GET}: {why}")
            raise Failure from None
        message = "the HPA controller was able to get the target's current scale"
        self._set("AbleToScale", "True", "SucceededGetScale", message)
        return scaled

    def _by_metrics(self, scaled: Scaled, history: History) -> tuple[int, str]:
        """Replicas that the metrics require within the limits, and the reason."""
        current = scaled.replicas
        desired, metric = self._computed(scaled)
        reason = ""
        if desired > current:
            reason = f"{metric} above target"
        elif desired < current:
            reason = "All metrics below target"
        limited = limit(self.spec, history, current, desired, self.loop.clock.now())
        self._set("AbleToScale", "True", *limited.able_to_scale)
        self._set("ScalingLimited", "True" if limited.is_limited else "False", *limited.scaling_limited)
        return limited.replicas, reason

    def _computed(self, scaled: Scaled) -> tuple[int, str]:
        """Highest number of replicas of all metrics, and the name of that metric."""
        target = self._target(scaled)
        self.metrics, failures = [], []
        replicas, name = 0, ""
        for metric in self.spec.get("metrics") or ():
            try:
                result = compute(metric, target)
            except FailedMetric as error:
                self._emit("Warning", error.reason, error.message)
                self.metrics.append({"type": ""})
                failures.append(error)
                continue
            self.metrics.append(result.status)
            if replicas == 0 or result.replicas > replicas:
                replicas, name = result.replicas, result.name
        if failures and (len(failures) == len(self.metrics) or replicas < scaled.replicas):
            first = failures[0]
            message = f"the HPA was unable to compute the replica count: {first.message}"
            self._set("ScalingActive", "False", first.reason, message)
            self._fail(
                scaled.replicas,
                f"invalid metrics ({len(failures)} invalid out of {len(self.metrics)}), first error is: {first}",
            )
        message = f"the HPA was able to successfully calculate a replica count from {name}"
        self._set("ScalingActive", "True", "ValidMetricFound", message)
        return replicas, name

    def _target(self, scaled: Scaled) -> Target:
        """Pods of the target and their usage."""
        loop, key = self.loop, self.key
        if not scaled.selector:
            self._emit("Warning", "SelectorRequired", "selector is required")
            message = "the HPA target's scale is missing a selector"
            self._set("ScalingActive", "False", "InvalidSelector", message)
            self._fail(scaled.replicas, "selector is required")
        try:
            selector = parse_label_selector(scaled.selector)
        except ParseError as error:
            why = f"couldn't convert selector into a corresponding internal selector object: {error}"
            self._reject_selector(scaled, "InvalidSelector", why)
        pods = loop.pods(key, selector)
        rivals = loop.rivals(key, selector, pods)
        if len(rivals) > 1:
            listing = " ".join(f"{{{name} {namespace}}}" for namespace, name in rivals)
            why = f"pods by selector {scaled.selector} are controlled by multiple HPAs: [{listing}]"
            self._reject_selector(scaled, "AmbiguousSelector", why)
        usages = {pod["metadata"]["name"]: usage for pod in pods if (usage := usage_of(pod))}
        return Target(scaled.replicas, pods, usages, tolerance(self.spec), key[0], loop.clock.now())

    def _reject_selector(self, scaled: Scaled, reason: str, why: str) -> NoReturn:
        self._emit("Warning", reason, why)
        self._set("ScalingActive", "False", reason, why)
        self._fail(scaled.replicas, why)

    def _fail(self, current: int, why: str) -> NoReturn:
        self._finish(current, self.autoscaler["status"].get("desiredReplicas", 0))
        self._emit("Warning", "FailedComputeMetricsReplicas", why)
        raise Failure

    async def _rescale(self, scaled: Scaled, desired: int, reason: str) -> None:
        text = f"New size: {desired}; reason: {reason}"
        try:
            change = {"spec": {"replicas": desired}}
            await self.loop.client.patch(
                scaled.resource, scaled.name, self.key[0], MERGE, change, subresource="scale"
            )
        except APIError as error:
            self._emit("Warning", "FailedRescale", f"{text}; error: {error}")
            message = f"the HPA controller was unable to update the target scale: {error}"
            self._set("AbleToScale", "False", "FailedUpdateScale", message)
            self._finish(scaled.replicas, self.autoscaler["status"].get("desiredReplicas", 0))
            raise Failure from None
        message = f"the HPA controller was able to update the target scale to {desired}"
        self._set("AbleToScale", "True", "SucceededRescale", message)
        self._emit("Normal", "SuccessfulRescale", text)

    def _finish(self, current: int, desired: int) -> None:
        """Completes the status. It has no observedGeneration, as in the reference."""
        old_status = self.autoscaler["status"]
        status: Object = {"desiredReplicas": desired, "currentMetrics": self.metrics}
        if current:
            status["currentReplicas"] = current
        for part in ("lastScaleTime", "conditions"):
            if part in old_status:
                status[part] = old_status[part]
        self.autoscaler["status"] = status

    def _set(self, kind: str, state: str, reason: str, message: str) -> None:
        condition = {"type": kind, "status": state, "reason": reason, "message": message}
        set_condition(self.autoscaler["status"]["conditions"], condition, self.loop.stamp())

    def _emit(self, type_: str, reason: str, message: str) -> None:
        self.loop.events.emit(self.autoscaler, type_, reason, message)


def tolerance(spec: Object) -> Tolerance:
    """Tolerance of an autoscaler by its behavior."""
    behavior, defaults = spec.get("behavior") or {}, Tolerance()
    values = {
        part: parse_quantity((behavior.get(direction) or {})["tolerance"]).nanos / NANO
        for part, direction in (("down", "scaleDown"), ("up", "scaleUp"))
        if "tolerance" in (behavior.get(direction) or {})
    }
    return defaults._replace(**values)


# Limits on scaling: stabilization windows, rates, minReplicas and maxReplicas

_DOWNSCALE_WINDOW = 300.0
"""Default stabilization window for scaling down, in seconds."""
_LONGEST_WINDOW = 3600.0
"""Longest stabilization window and policy period that validation allows, in seconds."""
_UP_FACTOR, _UP_LEAST = 2, 4
"""Limit without behavior: scaling up at most doubles the replicas, or raises them to 4."""


class Limited(NamedTuple):
    """Replicas, and the condition that describes how they were limited: reason and message."""

    replicas: int
    able_to_scale: tuple[str, str]
    scaling_limited: tuple[str, str]
    is_limited: bool


@dataclass(slots=True)
class History:
    """Recent recommendations and changes of one autoscaler: time and number of replicas."""

    recommendations: list[tuple[float, int]] = field(default_factory=list)
    raised: list[tuple[float, int]] = field(default_factory=list)
    lowered: list[tuple[float, int]] = field(default_factory=list)

    def add_change(self, old: int, new: int, now: float) -> None:
        (self.raised if new > old else self.lowered).append((now, abs(new - old)))

    def forget(self, now: float) -> None:
        """Drops entries that no window and no period reaches."""
        for entries in (self.recommendations, self.raised, self.lowered):
            entries[:] = [entry for entry in entries if entry[0] >= now - _LONGEST_WINDOW]


_READY = ("ReadyForNewScale", "recommended size matches current size")
_DOWN_STABILIZED = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
_UP_STABILIZED = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
_WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")
_UP_LIMIT = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
_DOWN_LIMIT = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")
_TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")


def limit(spec: Object, history: History, current: int, desired: int, now: float) -> Limited:
    """Applies the limits of an autoscaler to the replicas that its metrics require, and records them."""
    history.forget(now)
    behavior = spec.get("behavior")
    if behavior is None:
        return _limit_by_default(spec, history, current, desired, now)
    up, down = behavior["scaleUp"], behavior["scaleDown"]
    stable = _stabilize(up, down, history, current, desired, now)
    stabilized = _UP_STABILIZED if desired >= current else _DOWN_STABILIZED
    replicas, reason = stable, _WITHIN
    if stable > current:
        most = max(_rate_limit(up, history, current, now, 1), current)
        most, reason_above = (
            (most, _UP_LIMIT) if most < spec["maxReplicas"] else (spec["maxReplicas"], _TOO_MANY)
        )
        if stable > most:
            replicas, reason = most, reason_above
    elif stable < current:
        least = min(_rate_limit(down, history, current, now, -1), current)
        floor = spec.get("minReplicas", 1)
        least, reason_below = (least, _DOWN_LIMIT) if least > floor else (floor, _TOO_FEW)
        if stable < least:
            replicas, reason = least, reason_below
    return Limited(replicas, _READY if stable == desired else stabilized, reason, replicas != stable)


def _limit_by_default(spec: Object, history: History, current: int, desired: int, now: float) -> Limited:
    """Limits without behavior: a window for scaling down, and doubling for scaling up."""
    recent = [replicas for time, replicas in history.recommendations if time >= now - _DOWNSCALE_WINDOW]
    stable = max([desired, *recent])
    history.recommendations.append((now, desired))
    floor, ceiling = spec.get("minReplicas", 1), spec["maxReplicas"]
    rate = max(_UP_FACTOR * current, _UP_LEAST)
    most, reason_above = (rate, _UP_LIMIT) if rate < ceiling else (ceiling, _TOO_MANY)
    replicas, reason = stable, _WITHIN
    if stable < floor:
        replicas, reason = floor, _TOO_FEW
    elif stable > most:
        replicas, reason = most, reason_above
    return Limited(replicas, _READY if stable == desired else _DOWN_STABILIZED, reason, replicas != stable)


def _stabilize(up: Object, down: Object, history: History, current: int, desired: int, now: float) -> int:
    """Recommendation that the windows allow: the lowest recent one for scaling up, the highest for scaling down."""
    up_start = now - up.get("stabilizationWindowSeconds", 0)
    down_start = now - down.get("stabilizationWindowSeconds", _DOWNSCALE_WINDOW)
    lowest = min([desired, *(replicas for time, replicas in history.recommendations if time > up_start)])
    highest = max([desired, *(replicas for time, replicas in history.recommendations if time > down_start)])
    history.recommendations.append((now, desired))
    return min(max(current, lowest), highest)


def _rate_limit(rules: Object, history: History, current: int, now: float, sign: int) -> int:
    """Replicas that the policies allow. `sign` is 1 for scaling up and -1 for scaling down."""
    select = rules.get("selectPolicy", "Max")
    if select == "Disabled":
        return current
    proposals = []
    for policy in rules["policies"]:
        start = now - policy["periodSeconds"]
        base = current - _changed_since(history.raised, start) + _changed_since(history.lowered, start)
        if policy["type"] == "Pods":
            proposals.append(base + sign * policy["value"])
        elif sign > 0:
            proposals.append(math.ceil(base * (1 + policy["value"] / 100)))
        else:
            proposals.append(int(base * (1 - policy["value"] / 100)))
    choose: Callable[[list[int]], int] = max if (select == "Min") == (sign < 0) else min
    return choose(proposals)


def _changed_since(changes: list[tuple[float, int]], start: float) -> int:
    return sum(replicas for time, replicas in changes if time > start)
