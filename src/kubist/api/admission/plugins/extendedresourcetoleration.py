"""ExtendedResourceToleration: a pod that requests an extended resource tolerates the taint of that name."""

from __future__ import annotations

from kubist.api.admission.plugin import CREATE, UPDATE, Plugin
from kubist.api.kinds.shared.resource_names import is_extended
from kubist.api.resources.context import Context
from kubist.model.meta.object import Object


class ExtendedResourceToleration(Plugin):
    resources = ("pods",)
    operations = (CREATE, UPDATE)

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None
        spec = new["spec"]
        containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        requests = {name for c in containers for name in (c.get("resources") or {}).get("requests") or ()}
        for name in sorted(filter(is_extended, requests)):
            toleration = {"key": name, "operator": "Exists", "effect": "NoSchedule"}
            tolerations = spec.get("tolerations") or []
            same = [t for t in tolerations if (t.get("key"), t.get("effect")) == (name, "NoSchedule")]
            if toleration not in tolerations:
                spec["tolerations"] = [*(t for t in tolerations if t not in same), toleration]
