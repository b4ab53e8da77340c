"""DefaultTolerationSeconds: pods tolerate nodes that are not ready or unreachable for some time, 300 seconds by
default."""

from __future__ import annotations

from kubist.api.admission.plugin import CREATE, UPDATE, Plugin
from kubist.api.resources.context import Context
from kubist.model.meta.object import Object

TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class DefaultTolerationSeconds(Plugin):
    resources = ("pods",)
    operations = (CREATE, UPDATE)
    _seconds: tuple[int, ...] = ()
    _defaults: tuple[Object, ...] = ()

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None
        config = ctx.config
        seconds = (
            config.default_not_ready_toleration_seconds,
            config.default_unreachable_toleration_seconds,
        )
        if seconds != self._seconds:
            self._seconds, self._defaults = seconds, _tolerations(seconds)
        spec = new["spec"]
        tolerations = spec.get("tolerations")
        if not tolerations:
            spec["tolerations"] = [toleration.copy() for toleration in self._defaults]
            return
        tolerated = {t.get("key", "") for t in tolerations if t.get("effect", "") in ("", "NoExecute")}
        if "" in tolerated:
            return
        missing = [taint for taint in TAINTS if taint not in tolerated]
        if missing:
            spec["tolerations"] = tolerations + [t.copy() for t in self._defaults if t["key"] in missing]


def _tolerations(seconds: tuple[int, ...]) -> tuple[Object, ...]:
    return tuple(
        {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": each}
        for taint, each in zip(TAINTS, seconds, strict=True)
    )
