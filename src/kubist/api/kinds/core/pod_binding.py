"""Pod `/binding`: assigns a pod to a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.api.kinds.shared.pod_conditions import set_pod_condition
from kubist.api.resources.strategy import Create
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta.fields import FieldError, not_supported, required, summary
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError, bad_request, conflict, not_found, plain_error, success

if TYPE_CHECKING:
    from kubist.api.resources.context import Context


class PodBinding(Create):
    kind = "Binding"

    async def create(self, ctx: Context, body: Object) -> Object:
        if body["metadata"].get("name", "") != ctx.name:
            raise bad_request("name in URL does not match name in Binding object")
        return await bind(ctx, ctx.name, body)


async def bind(ctx: Context, name: str, binding: Object) -> Object:
    """Sets the node of pod `name`, and merges the binding's labels and annotations into the pod."""
    target = binding.get("target") or {}
    errors = _target_errors(target)
    if errors:
        raise plain_error(summary(errors))
    metadata = binding["metadata"]

    def change(pod: Object) -> Object:
        _check_preconditions(name, metadata, pod)
        _check_unbound(name, pod)
        pod["spec"]["nodeName"] = target["name"]
        status = pod.setdefault("status", {})
        status.pop("nominatedNodeName", None)
        for field in ("annotations", "labels"):
            if metadata.get(field):
                pod["metadata"].setdefault(field, {}).update(metadata[field])
        set_pod_condition(status, {"type": "PodScheduled", "status": "True"}, ctx.now)
        return pod

    if ctx.dry_run:
        pod = ctx.objects.get("pods", name, ctx.namespace)
        if pod is None:
            raise not_found("", "pods", name)
        change(pod)
    else:
        await ctx.objects.mutate("pods", name, ctx.namespace, change)
    return success(201)


def _target_errors(target: Object) -> list[FieldError]:
    errors = []
    if target.get("kind", "") not in ("", "Node"):
        errors.append(not_supported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        errors.append(required("target.name"))
    return errors


def _check_preconditions(name: str, metadata: Object, pod: Object) -> None:
    """Raises 409 unless the uid and resourceVersion in the binding, if set, are the pod's."""
    for field, word in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        expected, actual = metadata.get(field), pod["metadata"].get(field, "")
        if expected and expected != actual:
            key = f"/registry/pods/{pod['metadata'].get('namespace', '')}/{name}"
            why = f"Precondition failed: {word} in precondition: {expected}, {word} in object meta: {actual}"
            where = f"Code: 4, Key: {key}, ResourceVersion: 0"
            error = f"StorageError: invalid object, {where}, AdditionalErrorMsg: {why}"
            raise conflict("", "pods", name, error)


def _check_unbound(name: str, pod: Object) -> None:
    node = pod["spec"].get("nodeName")
    if pod["metadata"].get("deletionTimestamp"):
        raise _refused(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if node:
        raise _refused(name, f"pod {name} is already assigned to node {quoted(node)}")
    if pod["spec"].get("schedulingGates"):
        raise _refused(name, f"pod {name} has non-empty .spec.schedulingGates")


def _refused(name: str, why: str) -> APIError:
    return conflict("", "pods/binding", name, why)
