"""AdmissionReview: the request for a webhook, and the validation of its response."""

from __future__ import annotations

import base64
import binascii
import uuid

import orjson

from kubist.api.admission.admission_request import AdmissionRequest, Target
from kubist.model.meta.object import Object

GROUP = "admission.k8s.io"


class Undecodable(ValueError):
    """Body that is not an AdmissionReview of the requested version."""


class Answer:
    """Response of a webhook, v1 or v1beta1."""

    __slots__ = ("allowed", "audit_annotations", "patch", "patch_type", "status", "warnings")

    def __init__(self, response: Object, patch: bytes, patch_type: str) -> None:
        self.allowed = response.get("allowed") is True
        self.patch = patch
        self.patch_type = patch_type
        self.status: Object = response.get("status") or {}
        self.warnings: list[str] = response.get("warnings") or []
        self.audit_annotations: dict[str, str] = response.get("auditAnnotations") or {}


async def create(request: AdmissionRequest, target: Target, version: str) -> Object:
    sent = {"uid": str(uuid.uuid4()), **request.request(target)}
    sent["object"], sent["oldObject"] = await request.see(target)
    return {"kind": "AdmissionReview", "apiVersion": f"{GROUP}/{version}", "request": sent}


def verify(body: bytes, sent: Object, *, mutating: bool) -> Answer:
    """Response in a body. Raises ValueError if the body is invalid."""
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Undecodable(f"couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(review, dict):
        raise Undecodable("couldn't get version/kind; json parse error: not an object")
    _check_kind(review, sent["apiVersion"])
    response = review.get("response")
    if not isinstance(response, dict):
        raise ValueError("webhook response was absent")
    strict = sent["apiVersion"] == f"{GROUP}/v1"
    if strict:
        _check_identity(review, response, sent)
    patch_type = response.get("patchType")
    try:
        patch = base64.b64decode(response.get("patch") or "", validate=True)
    except (binascii.Error, TypeError):
        raise ValueError("json: cannot unmarshal the patch: illegal base64 data") from None
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


def _check_kind(review: Object, sent: str) -> None:
    """Rejects a response of another kind or version. A response without apiVersion or kind is accepted here."""
    api_version, kind = review.get("apiVersion") or "", review.get("kind") or ""
    if not api_version or not kind:
        return
    if kind != "AdmissionReview" or not api_version.startswith(f"{GROUP}/v1"):
        where = "k8s.io/apiserver/pkg/util/webhook/client.go:71"
        raise Undecodable(f'no kind "{kind}" is registered for version "{api_version}" in scheme "{where}"')
    if api_version != sent:
        given, wanted = (version.rpartition("/")[2] for version in (api_version, sent))
        raise Undecodable(
            f"converting ({given}.AdmissionReview) to ({wanted}.AdmissionReview): unknown conversion"
        )


def _check_identity(review: Object, response: Object, sent: Object) -> None:
    uid, given = sent["request"]["uid"], response.get("uid", "")
    if given != uid:
        raise ValueError(f'expected response.uid="{uid}", got "{given}"')
    api_version, kind = review.get("apiVersion") or "", review.get("kind") or ""
    if (api_version, kind) != (sent["apiVersion"], "AdmissionReview"):
        shown = api_version if "/" in api_version else f"/{api_version}"
        wanted = f"{sent['apiVersion']}, Kind=AdmissionReview"
        raise ValueError(f"expected webhook response of {wanted}, got {shown}, Kind={kind}")
