"""MutatingAdmissionWebhook: calls webhooks one after another. Each may change the object with a JSON patch."""

from __future__ import annotations

import logging
from itertools import chain

import orjson

from kubist.api.admission.admission_request import AdmissionRequest, Target, keep_managed_fields_valid
from kubist.api.admission.plugin import Pending
from kubist.api.admission.webhooks import Answer, CallError, Hook, WebhookPlugin
from kubist.api.resources.context import Context
from kubist.api.resources.reinvocation import Reinvocation
from kubist.api.webhooks.reviews import LARGE, parse_large
from kubist.base.jsontext.errors import DecodeError
from kubist.base.offload import away
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.model.patch import jsonpatch
from kubist.model.patch.errors import PatchFailed

log = logging.getLogger("kubist.admission")

NAME = "MutatingAdmissionWebhook"
AUDIT = "mutation.webhook.admission.k8s.io/"
PATCHES = "patch.webhook.admission.k8s.io/"


class MutatingAdmissionWebhook(WebhookPlugin):
    configurations = "mutatingwebhookconfigurations"

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> Pending:
        return self.ask(ctx, new, old)

    async def _ask_all(
        self, configurations: list[list[Hook]], ctx: Context, new: Object | None, old: Object | None
    ) -> None:
        if ctx.reinvocation is None:
            ctx.reinvocation = Reinvocation()
        rounds = ctx.reinvocation
        current_round = rounds.round(NAME)
        if rounds.again and current_round.output != new:
            current_round.changed()
        managers = ((new or {}).get("metadata") or {}).get("managedFields")
        request = AdmissionRequest(ctx, new, old, self._resources)
        for index, hook in enumerate(chain.from_iterable(configurations)):
            target = await hook.match(request)
            if target is None or (rounds.again and hook.uid not in current_round.due):
                continue
            if await self._ask(hook, request, target, f"round_{int(rounds.again)}_index_{index}"):
                current_round.changed()
                rounds.is_needed = True
            if hook.reinvocable:
                current_round.called.add(hook.uid)
        if new is not None:
            request.check_namespace()
            keep_managed_fields_valid(ctx, managers, new)
            current_round.output = orjson.loads(orjson.dumps(new))

    async def _ask(self, hook: Hook, request: AdmissionRequest, target: Target, where: str) -> bool:
        """Calls a webhook and applies its patch. Returns whether the object changed."""
        annotations = request.ctx.audit_annotations
        changed = False
        try:
            answer = await hook.call(request, target, mutating=True)
            if not answer.allowed:
                raise hook.denied(answer)
            if answer.patch:
                changed = await _patch(hook, request, target, answer)
        except CallError as error:
            if not hook.ignores_failure:
                raise status.internal_error(str(error)) from None
            log.warning("failurePolicy is Ignore, the request continues: %s", error)
            annotations[f"failed-open.{AUDIT}{where}"] = hook.name
        finally:
            said = {"configuration": hook.configuration, "webhook": hook.name, "mutated": changed}
            annotations[AUDIT + where] = orjson.dumps(said).decode()
        return changed


def _operations(patch: bytes) -> list[jsonpatch.Operation]:
    return jsonpatch.operations(parse_large(patch), checked=False)


async def _patch(hook: Hook, request: AdmissionRequest, target: Target, answer: Answer) -> bool:
    large = len(answer.patch) > LARGE
    try:
        operations = await away(large, _operations, answer.patch)
    except (orjson.JSONDecodeError, DecodeError, status.APIError) as error:
        why = f"received undecodable patch in webhook response: {error}"
        raise CallError(f'failed calling webhook "{hook.name}": {why}') from None
    if not operations:
        return False
    if request.new is None:
        why = "attempted to modify the object, which is not supported for this operation"
        raise status.internal_error(f'admission webhook "{hook.name}" {why}')
    if answer.patch_type != "JSONPatch":
        why = f'unsupported patch type "{answer.patch_type}"'
        raise CallError(f'failed calling webhook "{hook.name}": {why}')
    try:
        obj, _ = await request.see(target)
        patched = await away(large, jsonpatch.apply, obj, operations)
        if not isinstance(patched, dict):
            raise status.internal_error("the patched object is not an object")
        return await request.replace(patched, target)
    except DecodeError as error:
        raise status.internal_error(str(error)) from None
    except PatchFailed as error:
        failed = ": test failed" if error.why.startswith("testing value") else ""
        raise status.internal_error(error.why + failed) from None
    except status.APIError as error:
        raise error if error.code == 500 else status.internal_error(error.message) from None
