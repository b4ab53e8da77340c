"""Authorization webhook at the address of a clientConfig, without a cache of responses."""

from __future__ import annotations

import orjson

from kubist.api.filters.authorization.configuration import WebhookSettings
from kubist.api.filters.remote_review import review_status
from kubist.api.filters.webhooks import Webhook
from kubist.api.resources.context import Objects
from kubist.api.webhooks.client import WebhookClient
from kubist.base.http.client.calls import CallFailed
from kubist.model.meta.object import Object


class Remote:
    """Asks the server of a clientConfig."""

    def __init__(self, objects: Objects, config: Object, timeout: float) -> None:
        self._objects = objects
        self._client = WebhookClient(config)
        self._timeout = timeout

    async def ask(self, review: Object) -> Object:
        code, body = await self._client.post(self._objects, orjson.dumps(review), timeout=self._timeout)
        if not 200 <= code < 300:
            raise CallFailed(f"the authorization webhook answered with the status code {code}")
        return review_status(body, review)


def make_webhook(objects: Objects, config: Object, timeout: float, *, deny_on_failure: bool) -> Webhook:
    settings = WebhookSettings("", "v1", 0.0, 0.0, timeout, deny_on_failure)
    return Webhook(Remote(objects, config, timeout), settings)
