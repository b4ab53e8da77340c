"""DefaultTolerationSeconds: pods tolerate nodes that are not ready or unreachable for 300 seconds."""

from __future__ import annotations

from kubist.admission.plugin import CREATE, UPDATE, Plugin
from kubist.meta.object import Object
from kubist.resources.context import Context

TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
SECONDS = 300
DEFAULTS: list[Object] = [
    {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS}
    for taint in TAINTS
]


class DefaultTolerationSeconds(Plugin):
    resources = ("pods",)
    operations = (CREATE, UPDATE)

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None
        spec = new["spec"]
        held = spec.get("tolerations")
        if not held:
            spec["tolerations"] = [toleration.copy() for toleration in DEFAULTS]
            return
        if held == DEFAULTS:
            return
        tolerated = {t.get("key", "") for t in held if t.get("effect", "") in ("", "NoExecute")}
        if "" in tolerated:
            return
        missing = [taint for taint in TAINTS if taint not in tolerated]
        if missing:
            spec["tolerations"] = held + [t.copy() for t in DEFAULTS if t["key"] in missing]
