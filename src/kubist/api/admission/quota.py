"""Resource quota: usage of quota resources by objects, for each kind, and the scopes of a quota.

`evaluator_for` returns an evaluator for every resource. Kinds without their own rules are only counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubist.api.admission import amounts
from kubist.api.admission.amounts import Amounts
from kubist.api.admission.plugin import CREATE, UPDATE
from kubist.api.kinds.shared.resource_names import is_extended, is_native
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import at
from kubist.base import clock
from kubist.base.caching import bounded_cache
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import ZERO, Quantity
from kubist.model.meta.times import parse_time

ONE = Quantity(10**9, text="1")
DEVICE_CLASS_REQUESTS = "requests.deviceclass.resource.kubernetes.io/"
DEVICES_SUFFIX = ".deviceclass.resource.k8s.io/devices"
STORAGE_CLASS = ".storageclass.storage.k8s.io/"
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
COMPUTE = ("cpu", "memory", "ephemeral-storage")
OF_PODS = frozenset(
    (
        "count/pods",
        "pods",
        *COMPUTE,
        *(f"requests.{name}" for name in COMPUTE),
        *(f"limits.{name}" for name in COMPUTE),
    )
)
STATED = frozenset(f"{side}{name}" for side in ("", "requests.", "limits.") for name in COMPUTE[:2])
"""Resources that every container must set if a quota limits them."""
MOST_DEVICES = 32
"""Number of devices that a request with allocationMode All counts as."""


class Evaluator:
    """Evaluator of objects that are only counted: as `count/<resource>`, and under a short alias for some core
    kinds."""

    def __init__(self, resource: str, *aliases: str) -> None:
        self.names = (f"count/{resource}", *aliases)

    def handles(self, ctx: Context, new: Object, old: Object | None) -> bool:
        """Whether the request may change the usage."""
        return not ctx.subresource and old is None

    def concerned(self, hard: Iterable[str]) -> list[str]:
        """Limited resources that objects of this kind use."""
        return sorted(name for name in hard if self.uses(name))

    def uses(self, name: str) -> bool:
        return name in self.names

    def in_scope(self, scope: Object, obj: Object) -> bool:
        return False

    def matches(self, quota: Object, obj: Object) -> bool:
        """Whether the quota applies to the object: it limits a resource of the kind, and its scopes match."""
        hard = at(quota, "status.hard") or {}
        if not any(self.uses(name) for name in hard):
            return False
        return all(self.in_scope(scope, obj) for scope in _scopes_of(quota))

    def missing(self, required: Iterable[str], obj: Object) -> str:
        """Error message for resources that the object must set so that its usage can be measured; "" if none is
        missing."""
        return ""

    def usage(self, obj: Object) -> Amounts:
        return dict.fromkeys(self.names, ONE)


class Pods(Evaluator):
    def __init__(self) -> None:
        super().__init__("pods")

    def handles(self, ctx: Context, new: Object, old: Object | None) -> bool:
        if ctx.subresource:
            return ctx.subresource == "resize" and old is not None
        return old is None or _terminates(new) != _terminates(old)

    def uses(self, name: str) -> bool:
        if name in OF_PODS or name.startswith(("hugepages-", "requests.hugepages-")):
            return True
        extended = not is_native(name) or name.startswith(DEVICE_CLASS_REQUESTS)
        return extended and name.startswith("requests.")

    def in_scope(self, scope: Object, obj: Object) -> bool:
        return _pod_in_scope(scope, obj)

    def missing(self, required: Iterable[str], obj: Object) -> str:
        spec = obj["spec"]
        if any(at(spec, f"resources.{side}") for side in ("requests", "limits")):
            return ""
        names = STATED.intersection(required)
        lacking: dict[str, set[str]] = {}
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            bounds = container.get("resources") or {}
            stated = _compute_usage(amounts.read(bounds.get("requests")), amounts.read(bounds.get("limits")))
            for name in names - stated.keys():
                lacking.setdefault(name, set()).add(container.get("name", ""))
        if not lacking:
            return ""
        listed = (f"{name} for: {','.join(sorted(who))}" for name, who in sorted(lacking.items()))
        return f"must specify {'; '.join(listed)}"

    def usage(self, obj: Object) -> Amounts:
        used = {"count/pods": ONE}
        if not _ended(obj):
            requests = amounts.pod_requests(obj, running=True)
            used.update(_compute_usage(requests, amounts.pod_limits(obj, running=True)))
        return used


def _ended(pod: Object) -> bool:
    """Whether the pod is finished, or its grace period has passed. Such a pod uses only `count/pods`."""
    if at(pod, "status.phase") in ("Failed", "Succeeded"):
        return True
    metadata = pod["metadata"]
    grace = metadata.get("deletionGracePeriodSeconds")
    if not metadata.get("deletionTimestamp") or grace is None:
        return False
    return clock.now() > parse_time(metadata["deletionTimestamp"]) + int(grace)


def _compute_usage(requests: Amounts, limits: Amounts) -> Amounts:
    used = {"pods": ONE}
    for name in COMPUTE:
        if name in requests:
            used[name] = used[f"requests.{name}"] = requests[name]
        if name in limits:
            used[f"limits.{name}"] = limits[name]
    for name, amount in requests.items():
        if name.startswith("hugepages-"):
            used[name] = used[f"requests.{name}"] = amount
        elif is_extended(name) or name.startswith("deviceclass.resource.kubernetes.io/"):
            used[f"requests.{name}"] = amount
    return used


class Services(Evaluator):
    def __init__(self) -> None:
        super().__init__("services", "services", "services.nodeports", "services.loadbalancers")

    def handles(self, ctx: Context, new: Object, old: Object | None) -> bool:
        return not ctx.subresource

    def usage(self, obj: Object) -> Amounts:
        spec = obj["spec"]
        ports = spec.get("ports") or ()
        balanced = spec.get("type") == "LoadBalancer"
        count = len(ports) if balanced or spec.get("type") == "NodePort" else 0
        if balanced and spec.get("allocateLoadBalancerNodePorts") is False:
            count = sum(1 for port in ports if port.get("nodePort"))
        return {
            "count/services": ONE,
            "services": ONE,
            "services.loadbalancers": ONE if balanced else ZERO,
            "services.nodeports": ONE * count,
        }


class PersistentVolumeClaims(Evaluator):
    _NAMES = ("persistentvolumeclaims", "requests.storage")

    def __init__(self) -> None:
        super().__init__("persistentvolumeclaims", *self._NAMES)

    def handles(self, ctx: Context, new: Object, old: Object | None) -> bool:
        if ctx.subresource == "status" and old is not None:
            before, after = (amounts.read(at(claim, "status.allocatedResources")) for claim in (old, new))
            shrunk = before.get("storage", ZERO) > after.get("storage", ZERO)
            return shrunk or _attributes_classes(new) != _attributes_classes(old)
        return not ctx.subresource

    def uses(self, name: str) -> bool:
        return name in self.names or name.endswith(tuple(STORAGE_CLASS + known for known in self._NAMES))

    def in_scope(self, scope: Object, obj: Object) -> bool:
        return _claim_in_scope(scope, obj)

    def usage(self, obj: Object) -> Amounts:
        used = {"count/persistentvolumeclaims": ONE, "persistentvolumeclaims": ONE}
        storage = amounts.read(at(obj, "spec.resources.requests")).get("storage")
        if storage is not None:
            allocated = amounts.read(at(obj, "status.allocatedResources")).get("storage", ZERO)
            used["requests.storage"] = max(storage, allocated).round_up(0)
        annotated = (obj["metadata"].get("annotations") or {}).get(CLASS_ANNOTATION)
        name = annotated if annotated is not None else at(obj, "spec.storageClassName")
        if name:
            used.update({f"{name}{STORAGE_CLASS}{k}": used[k] for k in self._NAMES if k in used})
        return used


class ResourceClaims(Evaluator):
    def __init__(self) -> None:
        super().__init__("resourceclaims.resource.k8s.io")

    def handles(self, ctx: Context, new: Object, old: Object | None) -> bool:
        return not ctx.subresource

    def uses(self, name: str) -> bool:
        return name in self.names or name.endswith(DEVICES_SUFFIX) or name.startswith(DEVICE_CLASS_REQUESTS)

    def usage(self, obj: Object) -> Amounts:
        used = super().usage(obj)
        for request in at(obj, "spec.devices.requests") or ():
            worst: Amounts = {}
            exactly = request.get("exactly")
            for choice in request.get("firstAvailable") or ((exactly,) if exactly else ()):
                name = choice.get("deviceClassName", "")
                amounts.raise_to(worst, {name: ONE * _devices(choice)})
            for name, amount in worst.items():
                amounts.add(used, {name + DEVICES_SUFFIX: amount, DEVICE_CLASS_REQUESTS + name: amount})
        return used


def _devices(request: Object) -> int:
    mode = request.get("allocationMode")
    if mode == "All":
        return MOST_DEVICES
    return int(request.get("count", 0)) if mode == "ExactCount" else 0


_SPECIAL = {
    "configmaps": Evaluator("configmaps", "configmaps"),
    "persistentvolumeclaims": PersistentVolumeClaims(),
    "pods": Pods(),
    "replicationcontrollers": Evaluator("replicationcontrollers", "replicationcontrollers"),
    "resourceclaims.resource.k8s.io": ResourceClaims(),
    "resourcequotas": Evaluator("resourcequotas", "resourcequotas"),
    "secrets": Evaluator("secrets", "secrets"),
    "services": Services(),
}

IGNORED = frozenset(
    (
        "bindings",
        "componentstatuses",
        "events",
        "events.events.k8s.io",
        "tokenreviews.authentication.k8s.io",
        "selfsubjectreviews.authentication.k8s.io",
        "subjectaccessreviews.authorization.k8s.io",
        "selfsubjectaccessreviews.authorization.k8s.io",
        "localsubjectaccessreviews.authorization.k8s.io",
        "selfsubjectrulesreviews.authorization.k8s.io",
    )
)
"""Resources that no quota counts: events and virtual resources."""

OPERATIONS = (CREATE, UPDATE)


@bounded_cache(entries=4096, key_length=512)
def evaluator_for(resource: str) -> Evaluator:
    """Evaluator of a resource such as `deployments.apps`."""
    return _SPECIAL.get(resource) or Evaluator(resource)


def _scopes_of(quota: Object) -> Iterator[Object]:
    """Scopes of a quota, all in the form of scope selectors."""
    spec = quota.get("spec") or {}
    for name in spec.get("scopes") or ():
        yield {"scopeName": name, "operator": "Exists"}
    yield from (spec.get("scopeSelector") or {}).get("matchExpressions") or ()


def _pod_in_scope(scope: Object, pod: Object) -> bool:
    name: str = scope.get("scopeName", "")
    if name in ("Terminating", "NotTerminating"):
        return _terminates(pod) == (name == "Terminating")
    if name in ("BestEffort", "NotBestEffort"):
        # Saves start-up time: the rules of pods are loaded with the first pod.
        from kubist.api.kinds.core.podspec.resources import qos_class

        return (qos_class(pod["spec"]) == "BestEffort") == (name == "BestEffort")
    if name == "PriorityClass":
        class_name = pod["spec"].get("priorityClassName")
        return _selected(scope, {class_name} if class_name else set())
    if name == "CrossNamespacePodAffinity":
        return _crosses_namespaces(pod)
    return False


def _claim_in_scope(scope: Object, claim: Object) -> bool:
    return scope.get("scopeName") == "VolumeAttributesClass" and _selected(scope, _attributes_classes(claim))


def _terminates(pod: Object) -> bool:
    deadline = pod["spec"].get("activeDeadlineSeconds")
    return deadline is not None and deadline >= 0


def _attributes_classes(claim: Object) -> set[str]:
    """Volume attributes classes that a claim requests, has, or is being modified to."""
    paths = (
        "spec.volumeAttributesClassName",
        "status.currentVolumeAttributesClassName",
        "status.modifyVolumeStatus.targetVolumeAttributesClassName",
    )
    return {class_name for path in paths if (class_name := at(claim, path))}


def _selected(scope: Object, actual: set[str]) -> bool:
    """Whether the scope selector matches one of the values, or their absence."""
    operator, values = scope.get("operator"), set(scope.get("values") or ())
    if operator == "Exists":
        return bool(actual)
    if operator == "DoesNotExist":
        return not actual
    if operator == "In":
        return bool(actual & values)
    return not actual or bool(actual - values)


def _crosses_namespaces(pod: Object) -> bool:
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = at(pod, f"spec.affinity.{kind}") or {}
        terms = list(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            terms.append(weighted.get("podAffinityTerm") or {})
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False
