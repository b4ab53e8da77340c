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
        found = _find(ctx, new)
        if found is None:
            return
        spec = new["spec"]
        if found.get("overhead") is not None:
            fixed = found["overhead"].get("podFixed") or {}
            if spec.get("overhead") and not _equal(spec["overhead"], fixed):
                raise _mismatch(ctx, new)
            if fixed:
                spec["overhead"] = fixed
            else:
                spec.pop("overhead", None)
        if found.get("scheduling") is not None:
            _schedule(ctx, new, found["scheduling"])

    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None
        found = _find(ctx, new)
        held = new["spec"].get("overhead")
        if found is not None and found.get("overhead") is not None:
            if not _equal(held or {}, found["overhead"].get("podFixed") or {}):
                raise _mismatch(ctx, new)
        elif held is not None:
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
    found = ctx.objects.get("runtimeclasses", name, group="node.k8s.io")
    if found is None:
        raise forbidden(ctx, new, f'pod rejected: RuntimeClass "{name}" not found')
    return found


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
        held = selector.setdefault(key, value)
        if held != value:
            mine, theirs = f"runtimeClass.scheduling.nodeSelector[{key}]", f"pod.spec.nodeSelector[{key}]"
            raise forbidden(ctx, new, f"conflict: {mine} = {value}; {theirs} = {held}")
    if selector:
        spec["nodeSelector"] = selector
    tolerations = merge(spec.get("tolerations") or [], scheduling.get("tolerations") or [])
    if tolerations:
        spec["tolerations"] = tolerations
