"""Scopes of quotas: the pods and claims that a quota applies to."""

from __future__ import annotations

from collections.abc import Iterator

from kubist.api.resources.strategy import at
from kubist.model.meta.object import Object


def of(quota: Object) -> Iterator[Object]:
    """Scopes of a quota, all in the form of scope selectors."""
    spec = quota.get("spec") or {}
    for name in spec.get("scopes") or ():
        yield {"scopeName": name, "operator": "Exists"}
    yield from (spec.get("scopeSelector") or {}).get("matchExpressions") or ()


def pod_in_scope(scope: Object, pod: Object) -> bool:
    name: str = scope.get("scopeName", "")
    if name in ("Terminating", "NotTerminating"):
        return terminating(pod) == (name == "Terminating")
    if name in ("BestEffort", "NotBestEffort"):
        # Saves start-up time: the rules of pods are loaded with the first pod.
        from kubist.api.kinds.core.podspec.resources import qos_class

        return (qos_class(pod["spec"]) == "BestEffort") == (name == "BestEffort")
    if name == "PriorityClass":
        held = pod["spec"].get("priorityClassName")
        return _selected(scope, {held} if held else set())
    if name == "CrossNamespacePodAffinity":
        return _crosses_namespaces(pod)
    return False


def claim_in_scope(scope: Object, claim: Object) -> bool:
    return scope.get("scopeName") == "VolumeAttributesClass" and _selected(scope, attributes_classes(claim))


def terminating(pod: Object) -> bool:
    deadline = pod["spec"].get("activeDeadlineSeconds")
    return deadline is not None and deadline >= 0


def attributes_classes(claim: Object) -> set[str]:
    """Volume attributes classes that a claim requests, has, or is being changed to."""
    paths = (
        "spec.volumeAttributesClassName",
        "status.currentVolumeAttributesClassName",
        "status.modifyVolumeStatus.targetVolumeAttributesClassName",
    )
    return {held for path in paths if (held := at(claim, path))}


def _selected(scope: Object, held: set[str]) -> bool:
    """Whether the scope selector matches one of the values, or their absence."""
    operator, values = scope.get("operator"), set(scope.get("values") or ())
    if operator == "Exists":
        return bool(held)
    if operator == "DoesNotExist":
        return not held
    if operator == "In":
        return bool(held & values)
    return not held or bool(held - values)


def _crosses_namespaces(pod: Object) -> bool:
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = at(pod, f"spec.affinity.{kind}") or {}
        terms = list(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            terms.append(weighted.get("podAffinityTerm") or {})
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False
