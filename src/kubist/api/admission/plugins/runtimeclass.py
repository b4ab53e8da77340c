"""RuntimeClass: sets overhead, node selector and tolerations of the pod's RuntimeClass."""

from __future__ import annotations

from kubist.api.admission.plugin import CREATE, Plugin, forbidden
from kubist.api.admission.tolerations import merge
from kubist.api.resources.context import Context
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta.names import path_segment
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import parse_quantity
from kubist.model.meta.status import plain_error


class RuntimeClass(Plugin):
    resources = ("pods",)
    operations = (CREATE,)

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None
        runtime_class = _find(ctx, new)
        if runtime_class is None:
            return
        spec = new["spec"]
        if runtime_class.get("overhead") is not None:
            fixed = runtime_class["overhead"].get("podFixed") or {}
            if spec.get("overhead") and not _equal(spec["overhead"], fixed):
                raise _mismatch(ctx, new)
            if fixed:
                spec["overhead"] = fixed
            else:
                spec.pop("overhead", None)
        if runtime_class.get("scheduling") is not None:
            _schedule(ctx, new, runtime_class["scheduling"])

    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None
        runtime_class = _find(ctx, new)
        overhead = new["spec"].get("overhead")
        if runtime_class is not None and runtime_class.get("overhead") is not None:
            if not _equal(overhead or {}, runtime_class["overhead"].get("podFixed") or {}):
                raise _mismatch(ctx, new)
        elif overhead is not None:
            why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise forbidden(ctx, new, why)


def _find(ctx: Context, new: Object) -> Object | None:
    name = new["spec"].get("runtimeClassName")
    if name is None:
        return None
    if not name:
        raise plain_error("resource name may not be empty")
    if problems := path_segment(name):
        raise plain_error(f"invalid resource name {quoted(name)}: [{' '.join(problems)}]")
    runtime_class = ctx.objects.get("runtimeclasses", name, group="node.k8s.io")
    if runtime_class is None:
        raise forbidden(ctx, new, f'pod rejected: RuntimeClass "{name}" not found')
    return runtime_class


def _mismatch(ctx: Context, new: Object) -> Exception:
    return forbidden(ctx, new, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")


def _equal(one: dict[str, str], other: dict[str, str]) -> bool:
    """Whether two resource lists have the same amounts."""
    return one.keys() == other.keys() and all(
        parse_quantity(amount) == parse_quantity(other[name]) for name, amount in one.items()
    )


def _schedule(ctx: Context, new: Object, scheduling: Object) -> None:
    spec = new["spec"]
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        pod_value = selector.setdefault(key, value)
        if pod_value != value:
            mine, theirs = f"runtimeClass.scheduling.nodeSelector[{key}]", f"pod.spec.nodeSelector[{key}]"
            raise forbidden(ctx, new, f"conflict: {mine} = {value}; {theirs} = {pod_value}")
    if selector:
        spec["nodeSelector"] = selector
    tolerations = merge(spec.get("tolerations") or [], scheduling.get("tolerations") or [])
    if tolerations:
        spec["tolerations"] = tolerations
