"""ValidatingWebhookConfiguration: webhooks that allow or deny a request."""

from __future__ import annotations

from kubist.api.kinds.admissionregistration.webhooks import WebhookConfigurationStrategy

strategy = WebhookConfigurationStrategy()
