"""PodNodeSelector: adds the node selector of the namespace's annotation to its pods."""

from __future__ import annotations

from kubist.api.admission.plugin import CREATE, Plugin, forbidden
from kubist.api.resources.context import Context
from kubist.model.meta import status
from kubist.model.meta.object import Object

ANNOTATION = "scheduler.alpha.kubernetes.io/node-selector"


class PodNodeSelector(Plugin):
    resources = ("pods",)
    operations = (CREATE,)

    def __init__(self, configuration: Object | None = None) -> None:
        self._selectors: dict[str, str] = (configuration or {}).get("podNodeSelectorPluginConfig") or {}

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None
        chosen = {**self._of_namespace(ctx, new), **(new["spec"].get("nodeSelector") or {})}
        if chosen:
            new["spec"]["nodeSelector"] = chosen
        self.validate(ctx, new, old)

    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None
        self._of_namespace(ctx, new)
        allowed = _labels(self._selectors.get(ctx.namespace, ""))
        pod_selector = new["spec"].get("nodeSelector") or {}
        if allowed and any(allowed.get(key) != value for key, value in pod_selector.items()):
            why = "pod node label selector labels conflict with its namespace whitelist"
            raise forbidden(ctx, new, why)

    def _of_namespace(self, ctx: Context, pod: Object) -> dict[str, str]:
        """Node selector of the pod's namespace. Raises 403 if the pod's selector conflicts with it."""
        namespace = ctx.objects.get("namespaces", ctx.namespace)
        if namespace is None:
            raise status.plain_error(f"namespace {ctx.namespace} does not exist")
        text = (namespace["metadata"].get("annotations") or {}).get(ANNOTATION)
        selector = _labels(self._selectors.get("clusterDefaultNodeSelector", "") if text is None else text)
        pod_selector = pod["spec"].get("nodeSelector") or {}
        if any(pod_selector.get(key, value) != value for key, value in selector.items()):
            why = "pod node label selector conflicts with its namespace node label selector"
            raise forbidden(ctx, pod, why)
        return selector


def _labels(text: str) -> dict[str, str]:
    """Labels of the form `a=b,c=d`."""
    labels = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise status.plain_error(f"invalid selector: [{part}]")
        labels[key.strip()] = value.strip()
    return labels
