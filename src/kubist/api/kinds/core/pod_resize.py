"""Pod `/resize`: changes cpu and memory of a running pod. Other changes in the body are ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.api.kinds.core.pod_validation import validate_again, validate_with_exceptions
from kubist.api.kinds.core.podspec.annotations import MIRROR_POD
from kubist.api.kinds.core.podspec.options import Options
from kubist.api.kinds.core.podspec.resources import qos_class, same
from kubist.api.kinds.core.podspec.visit import restarts_always
from kubist.api.kinds.shared.update import STATUS_METADATA
from kubist.api.resources.strategy import Errors, Update, keep
from kubist.model.meta import objectmeta
from kubist.model.meta.fields import FieldError, forbidden, invalid
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

_LISTS = ("containers", "initContainers")
_RESIZABLE = ("resources", "resizePolicy")
_ONLY_COMPUTE = "only cpu and memory resources are mutable"


class PodResize(Update):
    metadata_rules = ()

    def prepare(self, ctx: Context, new: Object, old: Object) -> None:
        """Keeps all fields but resources. Added, removed or renamed containers are not reverted, so that validation
        reports them."""
        spec, before = new["spec"], old["spec"]
        if any(len(spec.get(field) or ()) != len(before.get(field) or ()) for field in _LISTS):
            return
        kept = {field: _resized(spec.get(field) or [], before.get(field) or []) for field in _LISTS}
        resources = spec.get("resources")
        new["spec"] = {**before, **{field: containers for field, containers in kept.items() if containers}}
        new["spec"].pop("resources", None)
        if resources is not None:
            new["spec"]["resources"] = resources
        keep(new, old, "status", *STATUS_METADATA)

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        return validate_with_exceptions(_validate, new, old, allow_privileged=ctx.config.allow_privileged)


def _resized(containers: list[Object], old: list[Object]) -> list[Object]:
    """Old containers with the new resources and resizePolicy."""
    if any(new.get("name") != before.get("name") for new, before in zip(containers, old, strict=True)):
        return containers
    return [
        {key: value for key, value in before.items() if key not in _RESIZABLE}
        | {key: new[key] for key in _RESIZABLE if key in new}
        for new, before in zip(containers, old, strict=True)
    ]


def _validate(new: Object, old: Object, options: Options) -> Errors:
    spec, before = new["spec"], old["spec"]
    if MIRROR_POD in (old["metadata"].get("annotations") or {}):
        return [forbidden("[]", "static pods cannot be resized")]
    if (before.get("os") or {}).get("name") == "windows":
        return [forbidden("[]", "windows pods cannot be resized")]
    errors = objectmeta.validate_update(new["metadata"], old["metadata"])
    errors += validate_again(new, options)
    status = old.get("status") or {}
    quality = status.get("qosClass") or qos_class(before)
    if quality != qos_class(spec):
        qos = (new.get("status") or {}).get("qosClass", "")
        errors.append(invalid("spec", qos, "Pod QOS Class may not change as a result of resizing"))
    if not _node_can_resize(status):
        errors.append(forbidden("spec", "Pod running on node without support for resize"))
    masked = dict(spec)
    if _has_amounts(spec) or _has_amounts(before):
        errors += _pod_level(masked, before)
    order = _order(spec, before)
    if order:
        return errors + order
    for field in reversed(_LISTS):
        for index, container in enumerate(before.get(field) or ()):
            path = f"spec.{field}[{index}].resources"
            errors += _removals(spec[field][index].get("resources"), container.get("resources"), path)
    errors += _other_changes(masked, before)
    if not errors and not same(masked, before):
        errors.append(forbidden("spec", _ONLY_COMPUTE))
    return errors


def _node_can_resize(status: Object) -> bool:
    """Whether the node supports resize. A running container without reported resources is on a node that does not."""
    for container in status.get("containerStatuses") or ():
        if "running" in (container.get("state") or {}):
            return "resources" in container
    return True


def _has_amounts(spec: Object) -> bool:
    resources = spec.get("resources") or {}
    return bool(resources.get("requests") or resources.get("limits"))


def _order(spec: Object, old: Object) -> Errors:
    errors: Errors = []
    for field in _LISTS:
        containers, before = spec.get(field) or [], old.get(field) or []
        if len(containers) != len(before):
            errors.append(forbidden(f"spec.{field}", f"{field} may not be added or removed on resize"))
            continue
        errors += [
            forbidden(f"spec.{field}[{index}].name", f"{field} may not be renamed or reordered on resize")
            for index, container in enumerate(before)
            if containers[index].get("name") != container.get("name")
        ]
    return errors


def _removals(new: Object | None, old: Object | None, path: str, what: str = "resource") -> Errors:
    return [
        forbidden(f"{path}.{field}", f"{what} {field} cannot be removed")
        for field in ("requests", "limits")
        if ((old or {}).get(field) or {}).keys() - ((new or {}).get(field) or {}).keys()
    ]


def _pod_level(masked: Object, old: Object) -> Errors:
    """Validates a change of pod-level resources. Puts the old cpu and memory into `masked`."""
    resources, before = masked.get("resources"), old.get("resources")
    if before is not None and resources is None:
        return [forbidden("spec.resources", "pod-level resources cannot be removed")]
    errors = _removals(resources, before, "spec.resources", "pod-level resource")
    if resources is not None:
        masked["resources"] = _with_old_compute(resources, before or {}, claims=True)
        if before is None and not masked["resources"]:
            del masked["resources"]
    if not same(masked.get("resources"), before, "resources"):
        errors.append(forbidden("spec", f"{_ONLY_COMPUTE} at pod-level"))
    return errors


def _with_old_compute(resources: Object, old: Object, *, claims: bool = False) -> Object:
    """Resources with the cpu and memory of `old`. Empty lists are omitted."""
    masked: Object = {}
    for field in ("limits", "requests"):
        amounts = {k: v for k, v in (resources.get(field) or {}).items() if k not in ("cpu", "memory")}
        amounts |= {k: v for k, v in (old.get(field) or {}).items() if k in ("cpu", "memory")}
        if amounts:
            masked[field] = amounts
    if claims and resources.get("claims"):
        masked["claims"] = resources["claims"]
    return masked


def _other_changes(masked: Object, old: Object) -> Errors:
    """Rejects container changes other than cpu and memory. Puts the old cpu and memory into `masked`."""
    errors: Errors = []
    for field in _LISTS:
        if not masked.get(field):
            continue
        containers = []
        for index, container in enumerate(masked[field]):
            before = old[field][index]
            resources = container.get("resources") or {}
            hidden = {**container, "resources": _with_old_compute(resources, before.get("resources") or {})}
            if not same(hidden, {"resources": {}, **before}):
                errors.append(_changed(field, index))
            if field == "initContainers" and container != before and not restarts_always(container):
                why = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
                errors += [
                    forbidden(f"spec.initContainers[{index}]", why)
                    for policy in container.get("resizePolicy") or ()
                    if policy.get("restartPolicy") == "RestartContainer"
                ]
            if "resources" not in before:
                del hidden["resources"]
            containers.append(hidden)
        masked[field] = containers
    return errors


def _changed(field: str, index: int) -> FieldError:
    if field == "containers":
        return forbidden("spec", _ONLY_COMPUTE)
    why = "only cpu and memory resources for init or sidecar containers are mutable"
    return forbidden(f"spec.initContainers[{index}]", why)
