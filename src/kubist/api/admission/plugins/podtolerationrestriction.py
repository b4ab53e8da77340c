"""PodTolerationRestriction: adds a namespace's default tolerations to its pods, and enforces its allowed
tolerations."""

from __future__ import annotations

import orjson

from kubist.api.admission import tolerations
from kubist.api.admission.plugin import CREATE, UPDATE, Plugin
from kubist.api.kinds.core.podspec.resources import qos_class
from kubist.api.resources.context import Context
from kubist.model.meta import status
from kubist.model.meta.object import Object

DEFAULTS = "scheduler.alpha.kubernetes.io/defaultTolerations"
ALLOWED = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
MEMORY_PRESSURE = {
    "key": "node.kubernetes.io/memory-pressure",
    "operator": "Exists",
    "effect": "NoSchedule",
}


class PodTolerationRestriction(Plugin):
    resources = ("pods",)
    operations = (CREATE, UPDATE)

    def __init__(self, configuration: Object | None = None) -> None:
        self._defaults: list[Object] = (configuration or {}).get("default") or []
        self._allowed: list[Object] = (configuration or {}).get("whitelist") or []

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None
        extra: list[Object] = []
        if old is None:
            of_namespace = _annotated(ctx, DEFAULTS)
            extra += self._defaults if of_namespace is None else of_namespace
        if qos_class(new["spec"]) != "BestEffort":
            extra.append(MEMORY_PRESSURE)
        if extra:
            new["spec"]["tolerations"] = tolerations.merge(new["spec"].get("tolerations") or [], extra)
        self.validate(ctx, new, old)

    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None
        held = new["spec"].get("tolerations") or []
        allowed, scope = _annotated(ctx, ALLOWED), "namespace"
        if allowed is None:
            allowed, scope = self._allowed, "cluster"
        coverage = tolerations.Coverage(allowed)
        if allowed and not all(map(coverage.covers, held)):
            what = "pod tolerations (possibly merged with namespace default tolerations) conflict with its"
            raise status.plain_error(f"{what} {scope} whitelist")


def _annotated(ctx: Context, annotation: str) -> list[Object] | None:
    """Tolerations in an annotation of the namespace; None without the annotation."""
    namespace = ctx.objects.get("namespaces", ctx.namespace)
    text = ((namespace or {"metadata": {}})["metadata"].get("annotations") or {}).get(annotation)
    if not text:
        return None if text is None else []
    try:
        found: list[Object] = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise status.plain_error(str(error)) from None
    return found
