"""ValidatingAdmissionWebhook: calls all matching webhooks concurrently. Each may reject the final object."""

from __future__ import annotations

import asyncio
import logging
from itertools import chain

from kubist.api.admission.admission_request import AdmissionRequest, Target
from kubist.api.admission.plugin import Pending
from kubist.api.admission.webhooks import CallError, Hook, WebhookPlugin
from kubist.api.resources.context import Context
from kubist.model.meta import status
from kubist.model.meta.object import Object

log = logging.getLogger("kubist.admission")

AUDIT = "failed-open.validating.webhook.admission.k8s.io/"


class ValidatingAdmissionWebhook(WebhookPlugin):
    configurations = "validatingwebhookconfigurations"

    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> Pending:
        return self.ask(ctx, new, old)

    async def _ask_all(
        self, configurations: list[list[Hook]], ctx: Context, new: Object | None, old: Object | None
    ) -> None:
        request = AdmissionRequest(ctx, new, old, self._resources, settled=True)
        due = []
        for hook in chain.from_iterable(configurations):
            target = await hook.match(request)
            if target is not None:
                due.append((hook, target))
        if not due:
            return
        calls = (_ask(hook, request, target, index) for index, (hook, target) in enumerate(due))
        errors = [error for error in await asyncio.gather(*calls) if error is not None]
        if errors:
            raise errors[0]


async def _ask(hook: Hook, request: AdmissionRequest, target: Target, index: int) -> status.APIError | None:
    """Error if the webhook rejects the request, otherwise None."""
    try:
        answer = await hook.call(request, target, mutating=False)
    except CallError as error:
        if not hook.ignores_failure:
            return status.internal_error(str(error))
        log.warning("failurePolicy is Ignore, the request continues: %s", error)
        request.ctx.audit_annotations[f"{AUDIT}round_0_index_{index}"] = hook.name
        return None
    except status.APIError as error:
        return error
    return None if answer.allowed else hook.denied(answer)
