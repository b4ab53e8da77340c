"""Conversion webhook of a CRD: sends objects in a ConversionReview and validates the converted objects.

The webhook may change only labels and annotations in metadata. A changed name, namespace or uid is an error;
the server restores all other metadata fields.
"""

from __future__ import annotations

import logging
import uuid
from typing import TYPE_CHECKING, Any

import orjson

from kubist.api.webhooks.client import WebhookClient, trust
from kubist.api.webhooks.reviews import LARGE, parse_review, response_of
from kubist.base.http.client.calls import CallFailed
from kubist.base.jsontext.errors import DecodeError
from kubist.base.jsontext.json import check_depth, json_type
from kubist.base.offload import away
from kubist.model.meta import status
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Objects

log = logging.getLogger("kubist.crd")

TIMEOUT = 30.0
REVIEW_VERSIONS = ("v1", "v1beta1")
GROUP = "apiextensions.k8s.io"


def valid_ca_bundle(bundle: str) -> bool:
    try:
        trust(bundle)
    except ValueError:
        return False
    return True


def webhook_of(crd: Object, objects: Objects) -> Webhook | None:
    conversion = crd["spec"].get("conversion") or {}
    if conversion.get("strategy") != "Webhook":
        return None
    return Webhook(conversion["webhook"], crd["spec"]["names"]["kind"], objects)


class Webhook:
    """Client for one conversion webhook. It uses the first of conversionReviewVersions that this server supports."""

    def __init__(self, webhook: Object, kind: str, objects: Objects) -> None:
        self._client = WebhookClient(webhook.get("clientConfig") or {})
        versions = webhook.get("conversionReviewVersions") or ()
        self._version = next((version for version in versions if version in REVIEW_VERSIONS), "")
        self._kind = kind
        self._objects = objects

    async def convert(self, obj: Object, api_version: str) -> Object:
        """`obj` in another version, as converted by the webhook. Raises a 500 error on any failure."""
        failed = f"conversion webhook for {obj['apiVersion']}, Kind={obj['kind']} failed: "
        try:
            review = self._review(obj, api_version)
            code, body = await self._client.post(
                self._objects, orjson.dumps(review), timeout=TIMEOUT, query=f"timeout={TIMEOUT:.0f}s"
            )
        except CallFailed as error:
            raise _failure(failed + str(error)) from None
        if code != 200:
            raise _failure(f"{failed}the server answered {code}")
        try:
            return await away(len(body) > LARGE, _converted, obj, api_version, review, body)
        except (_WrongAnswer, DecodeError) as error:
            raise _failure(failed + str(error)) from None

    def _review(self, obj: Object, api_version: str) -> Object:
        request = {"uid": str(uuid.uuid4()), "desiredAPIVersion": api_version, "objects": [obj]}
        return {
            "kind": "ConversionReview",
            "apiVersion": f"{GROUP}/{self._version or 'v1'}",
            "request": request,
        }


class _WrongAnswer(Exception):
    """Invalid response of the webhook."""


def _failure(why: str) -> status.APIError:
    log.warning("%.500s", why)
    return status.plain_error(why)


def _converted(obj: Object, api_version: str, review: Object, body: bytes) -> Object:
    value, sent_version, kind = parse_review(body)
    if kind != review["kind"] or sent_version != review["apiVersion"]:
        actual = f"{sent_version}, Kind={kind}"
        raise _WrongAnswer(f"expected webhook response of {review['apiVersion']}, got {actual}")
    response = response_of(value, "ConversionReview", sent_version.rpartition("/")[2])
    if response is None:
        raise _WrongAnswer("no response provided")
    if response["uid"] != review["request"]["uid"]:
        raise _WrongAnswer(f'expected response.uid="{review["request"]["uid"]}", got "{response["uid"]}"')
    result = response["result"]
    if result.get("status") != "Success":
        raise _WrongAnswer(result.get("message") or "no message")
    converted = response.get("convertedObjects") or []
    if len(converted) != 1:
        raise _WrongAnswer(f"webhook returned {len(converted)} objects, expected 1")
    new = converted[0]
    if not isinstance(new, dict) or new.get("apiVersion") != api_version:
        actual = str(new.get("apiVersion") if isinstance(new, dict) else new)
        raise _WrongAnswer(
            f"webhook returned invalid object at index 0: expected {api_version}, got {actual}"
        )
    if new.get("kind") != obj["kind"]:
        raise _WrongAnswer(f"webhook returned an object of kind {new.get('kind')}")
    check_depth(new)
    new["metadata"] = _metadata(obj["metadata"], new.get("metadata"))
    return new


def _metadata(before: Object, after: Any) -> Object:
    """The original metadata with the labels and annotations of the converted object."""
    if not isinstance(after, dict):
        raise _WrongAnswer("converted object has no metadata")
    for name in ("name", "namespace", "uid"):
        if after.get(name, "") != before.get(name, ""):
            raise _WrongAnswer(f"must have the same {name}: {after.get(name, '')} != {before.get(name, '')}")
    kept = {key: value for key, value in before.items() if key not in ("labels", "annotations")}
    for name in ("labels", "annotations"):
        if after.get(name) is not None:
            kept[name] = _texts(name, after[name])
            if not kept[name]:
                del kept[name]
    return kept


def _texts(field: str, values: Any) -> dict[str, str]:
    """Labels or annotations of a converted object."""
    if not isinstance(values, dict):
        raise _WrongAnswer(f"invalid metadata.{field} of type {_go_type(values)} in converted object")
    for key, value in values.items():
        if not isinstance(value, str):
            why = f"must be a string, but is {_go_type(value)} in converted object"
            raise _WrongAnswer(f"metadata.{field}[{key}] {why}")
    return values


_GO_TYPES = {
    "object": "map[string]interface {}",
    "array": "[]interface {}",
    "string": "string",
    "bool": "bool",
    "null": "<nil>",
    "number": "int64",
}


def _go_type(value: Any) -> str:
    """Go type of a value of an unstructured object."""
    if isinstance(value, float):
        return "float64"
    return _GO_TYPES[json_type(value)]
