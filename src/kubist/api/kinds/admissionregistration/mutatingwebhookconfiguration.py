"""MutatingWebhookConfiguration: webhooks that may change an object before it is stored."""

from __future__ import annotations

from kubist.api.kinds.admissionregistration.webhooks import WebhookConfigurationStrategy
from kubist.model.meta.object import Object


class MutatingWebhookConfigurationStrategy(WebhookConfigurationStrategy):
    def default(self, obj: Object) -> None:
        super().default(obj)
        for hook in obj.get("webhooks") or ():
            hook.setdefault("reinvocationPolicy", "Never")


strategy = MutatingWebhookConfigurationStrategy()
