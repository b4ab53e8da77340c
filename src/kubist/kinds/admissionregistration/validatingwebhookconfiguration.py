"""ValidatingWebhookConfiguration: servers that are asked whether a request may pass."""

from __future__ import annotations

from kubist.kinds.admissionregistration.webhooks import WebhookConfigurationStrategy

strategy = WebhookConfigurationStrategy()
