"""Admission webhooks: base of the two plugins, compiled webhooks of a configuration, matching, and the AdmissionReview
call to the webhook's server."""

from __future__ import annotations

import base64
import uuid
from typing import TYPE_CHECKING, ClassVar

import orjson

from kubist.api.admission.admission_request import AdmissionRequest, Target
from kubist.api.admission.followed import Followed
from kubist.api.admission.match_conditions import Conditions
from kubist.api.admission.matching import Criteria, exempt
from kubist.api.admission.plugin import CONNECT, CREATE, DELETE, UPDATE, Pending, Plugin
from kubist.api.admission.policies.authorizer import Decisions
from kubist.api.admission.policies.evaluation import Evaluation, Failed
from kubist.api.kinds.admissionregistration.expressions import Environment
from kubist.api.resources.context import Context
from kubist.api.webhooks.client import WebhookClient
from kubist.api.webhooks.reviews import LARGE, parse_review, response_of
from kubist.base.http.client.calls import CallFailed
from kubist.base.jsontext.errors import DecodeError
from kubist.base.offload import away
from kubist.model.meta import status
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.admission.followed import Followed
    from kubist.api.object_store.registry import Registry


USER_AGENT = "kube-apiserver-admission"
GREATEST_CODE = 999
"""Greatest status code of three digits, which Go's server sends."""


class CallError(Exception):
    """Failed webhook call. The webhook's failurePolicy decides about the request."""


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
        """Target with which the webhook matches the request, or None."""
        target = self.criteria.match(request)
        if target is None or not self.conditions:
            return target
        evaluation = await Evaluation.of(request, target, Decisions(request.ctx))
        try:
            return target if await self.conditions.hold(evaluation) else None
        except Failed as error:
            resource = request.ctx.resource
            raise status.forbidden(resource.group, resource.resource, request.name, str(error)) from None

    async def call(self, request: AdmissionRequest, target: Target, *, mutating: bool) -> Answer:
        """Calls the webhook. Raises CallError if the call fails or the response is invalid."""
        ctx = request.ctx
        if ctx.dry_run and self.side_effects not in ("None", "NoneOnDryRun"):
            raise status.bad_request(f'admission webhook "{self.name}" does not support dry run')
        version = next((version for version in self.versions if version in ("v1", "v1beta1")), "")
        if not version:
            known = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
            raise CallError(self._failed(f"could not create admission objects: {known}"))
        sent = await create_review(request, target, version)
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
            answer = await away(len(answered) > LARGE, _verify_review, answered, sent, mutating)
        except DecodeError as error:
            raise CallError(self._failed(f"failed to call webhook: {error}")) from None
        except ValueError as error:
            raise CallError(self._failed(f"received invalid webhook response: {error}")) from None
        self._note(ctx, answer)
        return answer

    def _failed(self, why: str) -> str:
        return f'failed calling webhook "{self.name}": {why}'

    def _note(self, ctx: Context, answer: Answer) -> None:
        for key, value in answer.audit_annotations.items():
            ctx.audit_annotations[f"{self.name}/{key}"] = value
        for warning in answer.warnings:
            ctx.warn(warning)

    def denied(self, answer: Answer) -> status.APIError:
        """Error for a request that the webhook denied, with the webhook's message and code if it has any."""
        result = answer.status
        said = result.get("message") or result.get("reason")
        message = f'admission webhook "{self.name}" denied the request' + (
            f": {said}" if said else " without explanation"
        )
        error = status.APIError(
            _denial_code(result.get("code", 0)), result.get("reason", ""), message, result.get("details")
        )
        if result.get("metadata"):
            error.list_meta = result["metadata"]
        return error


def _denial_code(code: int) -> int:
    """Status code of a denial for the code that a webhook sent. The reference answers 500 to a code that HTTP cannot
    express."""
    if code > GREATEST_CODE:
        return 500
    return max(code, 400)


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


class WebhookPlugin(Plugin):
    operations = (CREATE, UPDATE, DELETE, CONNECT)
    configurations: ClassVar[str]
    """Resource name of the configurations."""
    _configured: Followed[list[Hook]] | None = None

    def start(self, registry: Registry) -> None:
        group = "admissionregistration.k8s.io"
        self._configured = self.followed = Followed(registry, group, self.configurations, hooks_of)
        self._resources = registry.resources

    def ask(self, ctx: Context, new: Object | None, old: Object | None) -> Pending:
        """Calls all webhooks, unless the request is for a kind that configures admission."""
        if self._configured is None or exempt(ctx.resource.kind, ctx.resource.group):
            return None
        return self._ask_all(self._configured.items, ctx, new, old)

    async def _ask_all(
        self, configurations: list[list[Hook]], ctx: Context, new: Object | None, old: Object | None
    ) -> None:
        raise AssertionError("subclasses must override _ask_all")


_GROUP = "admission.k8s.io"


class Answer:
    """Response of a webhook, v1 or v1beta1."""

    __slots__ = ("allowed", "audit_annotations", "patch", "patch_type", "status", "warnings")

    def __init__(self, response: Object, patch: bytes, patch_type: str) -> None:
        self.allowed: bool = response["allowed"]
        self.patch = patch
        self.patch_type = patch_type
        self.status: Object = response.get("status") or {}
        self.warnings: list[str] = response.get("warnings") or []
        self.audit_annotations: dict[str, str] = response.get("auditAnnotations") or {}


async def create_review(request: AdmissionRequest, target: Target, version: str) -> Object:
    sent = {"uid": str(uuid.uuid4()), **request.request(target)}
    sent["object"], sent["oldObject"] = await request.see(target)
    return {"kind": "AdmissionReview", "apiVersion": f"{_GROUP}/{version}", "request": sent}


def _verify_review(body: bytes, sent: Object, mutating: bool) -> Answer:
    """Response in a body. Raises DecodeError if the body is not an AdmissionReview of the requested version, and
    ValueError if its response is invalid."""
    review, api_version, kind = parse_review(body)
    _check_kind(api_version, kind, sent["apiVersion"])
    response = response_of(review, "AdmissionReview", sent["apiVersion"].rpartition("/")[2])
    if response is None:
        raise ValueError("webhook response was absent")
    strict = sent["apiVersion"] == f"{_GROUP}/v1"
    if strict:
        _check_identity(api_version, kind, response, sent)
    patch_type = response.get("patchType")
    patch = base64.b64decode(response.get("patch", ""))
    if not mutating:
        if strict and patch:
            raise ValueError("validating webhook may not return response.patch")
        if strict and patch_type is not None:
            raise ValueError("validating webhook may not return response.patchType")
        return Answer(response, b"", "")
    if not strict:
        return Answer(response, patch, "JSONPatch" if patch else "")
    if patch and patch_type is None:
        raise ValueError("webhook returned response.patch but not response.patchType")
    if not patch and patch_type is not None:
        raise ValueError("webhook returned response.patchType but not response.patch")
    if patch_type == "":
        raise ValueError('webhook returned invalid response.patchType of ""')
    return Answer(response, patch, patch_type or "")


def _check_kind(api_version: str, kind: str, sent: str) -> None:
    """Rejects a response of another kind or version. A response without apiVersion or kind is accepted here."""
    if not api_version or not kind:
        return
    if kind != "AdmissionReview" or not api_version.startswith(f"{_GROUP}/v1"):
        where = "k8s.io/apiserver/pkg/util/webhook/client.go:71"
        raise DecodeError(f'no kind "{kind}" is registered for version "{api_version}" in scheme "{where}"')
    if api_version != sent:
        source, target = (version.rpartition("/")[2] for version in (api_version, sent))
        raise DecodeError(
            f"converting ({source}.AdmissionReview) to ({target}.AdmissionReview): unknown conversion"
        )


def _check_identity(api_version: str, kind: str, response: Object, sent: Object) -> None:
    uid, response_uid = sent["request"]["uid"], response["uid"]
    if response_uid != uid:
        raise ValueError(f'expected response.uid="{uid}", got "{response_uid}"')
    if (api_version, kind) != (sent["apiVersion"], "AdmissionReview"):
        version_text = api_version if "/" in api_version else f"/{api_version}"
        expected = f"{sent['apiVersion']}, Kind=AdmissionReview"
        raise ValueError(f"expected webhook response of {expected}, got {version_text}, Kind={kind}")
