"""AdmissionReviews: what a webhook is sent, and what may come back."""

from __future__ import annotations

import base64
import binascii
import uuid
from typing import Any

import orjson

from kubist.admission.attributes import Attributes, Target

Object = dict[str, Any]
GROUP = "admission.k8s.io"


class Answer:
    """A webhook's answer, of either version."""

    __slots__ = ("allowed", "audit_annotations", "patch", "patch_type", "status", "warnings")

    def __init__(self, response: Object, patch: bytes, patch_type: str) -> None:
        self.allowed = response.get("allowed") is True
        self.patch = patch
        self.patch_type = patch_type
        self.status: Object = response.get("status") or {}
        self.warnings: list[str] = response.get("warnings") or []
        self.audit_annotations: dict[str, str] = response.get("auditAnnotations") or {}


async def create(request: Attributes, target: Target, version: str) -> Object:
    sent = {"uid": str(uuid.uuid4()), **request.request(target)}
    sent["object"], sent["oldObject"] = await request.see(target)
    return {"kind": "AdmissionReview", "apiVersion": f"{GROUP}/{version}", "request": sent}


def verify(body: bytes, sent: Object, *, mutating: bool) -> Answer:
    """The answer in a body; ValueError with what is wrong with it."""
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(review, dict):
        raise ValueError("couldn't get version/kind; json parse error: not an object")
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


def _check_identity(review: Object, response: Object, sent: Object) -> None:
    uid, given = sent["request"]["uid"], response.get("uid", "")
    if given != uid:
        raise ValueError(f'expected response.uid="{uid}", got "{given}"')
    api_version, kind = review.get("apiVersion") or "", review.get("kind") or ""
    if (api_version, kind) != (sent["apiVersion"], "AdmissionReview"):
        shown = api_version if "/" in api_version else f"/{api_version}"
        wanted = f"{sent['apiVersion']}, Kind=AdmissionReview"
        raise ValueError(f"expected webhook response of {wanted}, got {shown}, Kind={kind}")
