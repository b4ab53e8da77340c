"""Priority: sets the priority and preemptionPolicy of a pod from its PriorityClass or the global default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.api.admission.followed import Followed
from kubist.api.admission.plugin import CREATE, UPDATE, Plugin, forbidden
from kubist.api.resources.context import Context
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.object_store.registry import Registry

GROUP = "scheduling.k8s.io"
CLASSES = f"priorityclasses.{GROUP}"


class Priority(Plugin):
    resources = ("pods", CLASSES)
    operations = (CREATE, UPDATE)

    def start(self, registry: Registry) -> None:
        self._classes = Followed(registry, GROUP, "priorityclasses", dict)
        self._seen = -1
        self._chosen: Object | None = None

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        if new is None or ctx.resource.resource != "pods":
            return
        spec = new["spec"]
        if old is not None:
            for field in ("priority", "preemptionPolicy"):
                if spec.get(field) is None and old["spec"].get(field) is not None:
                    spec[field] = old["spec"][field]
            return
        name, priority, policy = self._resolve(ctx, new, spec.get("priorityClassName", ""))
        if name:
            spec["priorityClassName"] = name
        pod_priority = spec.get("priority")
        if pod_priority is not None and pod_priority != priority:
            what = f"the integer value of priority ({pod_priority}) must not be provided in pod spec"
            raise _computed(ctx, new, what, priority)
        spec["priority"] = priority
        if policy:
            pod_policy = spec.get("preemptionPolicy")
            if pod_policy is not None and pod_policy != policy:
                what = f"the string value of PreemptionPolicy ({pod_policy}) must not be provided in pod spec"
                raise _computed(ctx, new, what, policy)
            spec["preemptionPolicy"] = policy

    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        if new is None or ctx.resource.resource == "pods" or not new.get("globalDefault"):
            return
        default = self._default()
        if default is not None and (old is None or default["metadata"]["name"] != new["metadata"]["name"]):
            name = default["metadata"]["name"]
            why = f"PriorityClass {name} is already marked as default. Only one default can exist"
            raise forbidden(ctx, new, why)

    def _resolve(self, ctx: Context, new: Object, name: str) -> tuple[str, int, str]:
        """Name, value and preemption policy of the pod's PriorityClass."""
        obj = self._classes.get(name) if name else self._default()
        if obj is None:
            if name:
                raise forbidden(ctx, new, f"no PriorityClass with name {name} was found")
            return "", 0, "PreemptLowerPriority"
        return obj["metadata"]["name"], obj.get("value", 0), obj.get("preemptionPolicy", "")

    def _default(self) -> Object | None:
        """PriorityClass of pods that name none. If several are marked as global default, the one with the lowest
        value."""
        classes = self._classes.items
        if self._classes.generation != self._seen:
            self._seen = self._classes.generation
            defaults = [obj for obj in classes if obj.get("globalDefault")]
            self._chosen = min(defaults, key=lambda obj: obj.get("value", 0), default=None)
        return self._chosen


def _computed(ctx: Context, new: Object, what: str, value: int | str) -> Exception:
    why = f"{what}; priority admission controller computed {value} from the given PriorityClass name"
    return forbidden(ctx, new, why)
