"""Compiled webhooks of a configuration: matching, and the call to the webhook's server."""

from __future__ import annotations

import orjson

from kubist.api.admission.admission_request import AdmissionRequest, Target
from kubist.api.admission.matchconditions import Conditions
from kubist.api.admission.matching import Criteria
from kubist.api.admission.policies.authorizer import Decisions
from kubist.api.admission.policies.evaluation import Evaluation, Failed
from kubist.api.admission.webhooks import review
from kubist.api.kinds.admissionregistration.expressions import Environment
from kubist.api.resources.context import Context
from kubist.api.webhooks.client import WebhookClient
from kubist.base.http.client.calls import CallFailed
from kubist.model.meta import status
from kubist.model.meta.object import Object

USER_AGENT = "kube-apiserver-admission"


class CallError(Exception):
    """Webhook call that failed. The webhook's failurePolicy decides about the request."""


class Hook:
    """One webhook of a configuration."""

    def __init__(self, configuration: str, spec: Object, uid: str) -> None:
        self.configuration = configuration
        self.name: str = spec.get("name", "")
        self.uid = uid
        self.criteria = Criteria(spec)
        self.ignores_failure = spec.get("failurePolicy") == "Ignore"
        self.conditions = Conditions(
            spec.get("matchConditions") or [], Environment(), ignores_failure=self.ignores_failure
        )
        self.side_effects: str = spec.get("sideEffects", "")
        self.reinvocable = spec.get("reinvocationPolicy") == "IfNeeded"
        self.timeout: int = spec.get("timeoutSeconds", 10)
        self.versions: list[str] = spec.get("admissionReviewVersions") or []
        self._client = WebhookClient(spec.get("clientConfig") or {})

    async def match(self, request: AdmissionRequest) -> Target | None:
        """Target that the webhook matches, or None."""
        target = self.criteria.match(request)
        if target is None or not self.conditions:
            return target
        evaluation = await Evaluation.of(request, target, Decisions(request.ctx))
        try:
            return target if await self.conditions.hold(evaluation) else None
        except Failed as error:
            resource = request.ctx.resource
            raise status.forbidden(resource.group, resource.resource, request.name, str(error)) from None

    async def call(self, request: AdmissionRequest, target: Target, *, mutating: bool) -> review.Answer:
        """Calls the webhook. Raises CallError if the call fails or the response is invalid."""
        ctx = request.ctx
        if ctx.dry_run and self.side_effects not in ("None", "NoneOnDryRun"):
            raise status.bad_request(f'admission webhook "{self.name}" does not support dry run')
        version = next((version for version in self.versions if version in ("v1", "v1beta1")), "")
        if not version:
            known = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
            raise CallError(self._failed(f"could not create admission objects: {known}"))
        sent = await review.create(request, target, version)
        try:
            code, answered = await self._client.post(
                ctx.objects,
                orjson.dumps(sent),
                timeout=self.timeout,
                query=f"timeout={self.timeout}s",
                user_agent=USER_AGENT,
            )
            if code != 200:
                raise CallFailed(_server_error(code, answered))
        except CallFailed as error:
            raise CallError(self._failed(f"failed to call webhook: {error}")) from None
        try:
            answer = review.verify(answered, sent, mutating=mutating)
        except review.Undecodable as error:
            raise CallError(self._failed(f"failed to call webhook: {error}")) from None
        except ValueError as error:
            raise CallError(self._failed(f"received invalid webhook response: {error}")) from None
        self._note(ctx, answer)
        return answer

    def _failed(self, why: str) -> str:
        return f'failed calling webhook "{self.name}": {why}'

    def _note(self, ctx: Context, answer: review.Answer) -> None:
        for key, value in answer.audit_annotations.items():
            ctx.audit_annotations[f"{self.name}/{key}"] = value
        for warning in answer.warnings:
            ctx.warn(warning)

    def denied(self, answer: review.Answer) -> status.APIError:
        """Error for a request that the webhook denied, with the webhook's message and code if it has any."""
        result = answer.status
        said = result.get("message") or result.get("reason")
        message = f'admission webhook "{self.name}" denied the request' + (
            f": {said}" if said else " without explanation"
        )
        code = result.get("code") or 0
        error = status.APIError(
            code if code >= 400 else 400, result.get("reason", ""), message, result.get("details")
        )
        if result.get("metadata"):
            error.list_meta = result["metadata"]
        return error


def hooks_of(configuration: Object) -> list[Hook]:
    """Webhooks of a configuration. Webhooks with the same name get different uids by number."""
    name = configuration["metadata"]["name"]
    seen: dict[str, int] = {}
    hooks = []
    for spec in configuration.get("webhooks") or ():
        number = seen[spec.get("name", "")] = seen.get(spec.get("name", ""), -1) + 1
        hooks.append(Hook(name, spec, f"{name}/{spec.get('name', '')}/{number}"))
    return hooks


def _server_error(code: int, body: bytes) -> str:
    """Error message of client-go for a response that is not 200."""
    if code == 404:
        return "the server could not find the requested resource"
    if code >= 500:
        text = body[:2048].decode(errors="replace").strip() or "unknown"
        return f"an error on the server ({orjson.dumps(text).decode()}) has prevented the request from succeeding"
    return "the server rejected our request for an unknown reason"
