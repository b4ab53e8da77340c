"""ServiceAccount `/token`: signs a TokenRequest's token, with audiences, expiry and an optional bound object."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kubist.api.resources.strategy import Create
from kubist.base import clock
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import fields
from kubist.model.meta.names import path_segment
from kubist.model.meta.object import Object
from kubist.model.meta.status import bad_request, conflict, internal_error, invalid, not_found
from kubist.model.meta.times import format_time

if TYPE_CHECKING:
    from kubist.api.resources.context import Context, Tokens

GROUP = "authentication.k8s.io"
DEFAULT_SECONDS = 3600
MIN_SECONDS = 600
MAX_SECONDS = 1 << 32
PROJECTED_SECONDS = 3607
"""Expiry in seconds that the kubelet requests for older clients. Such tokens are valid for a year, with this time as
their warnafter claim."""
EXTENDED_SECONDS = 365 * 24 * 3600


class ServiceAccountToken(Create):
    group = GROUP
    kind = "TokenRequest"
    managed = True

    def default(self, body: Object) -> None:
        if body["spec"].get("expirationSeconds") is None:
            body["spec"]["expirationSeconds"] = DEFAULT_SECONDS

    async def create(self, ctx: Context, body: Object) -> Object:
        account = _account(ctx, body)
        signer = ctx.objects.tokens
        if signer is None:
            raise internal_error("no key to sign service account tokens with")
        metadata, spec = body["metadata"], body["spec"]
        now = int(clock.now())
        if not spec.get("audiences"):
            spec["audiences"] = list(signer.audiences)
        metadata["name"] = account["metadata"]["name"]
        metadata["namespace"] = account["metadata"]["namespace"]
        metadata["uid"] = account["metadata"]["uid"]
        metadata["creationTimestamp"] = format_time(now)
        _validate(spec)
        bound = _bound_claims(ctx, spec.get("boundObjectRef"))
        longest = ctx.config.service_account_max_token_expiration
        if 0 < longest < spec["expirationSeconds"]:
            expiration = spec["expirationSeconds"]
            ctx.warn(f"requested expiration of {expiration} seconds shortened to {longest} seconds")
            spec["expirationSeconds"] = longest
        seconds = lifetime = spec["expirationSeconds"]
        private = dict(bound)
        if (
            ctx.config.service_account_extend_token_expiration
            and "pod" in bound
            and seconds == PROJECTED_SECONDS
            and set(spec["audiences"]) <= set(signer.audiences)
        ):
            private["warnafter"] = now + seconds
            lifetime = EXTENDED_SECONDS
        token, identity = sign_token(signer, account, lifetime, spec["audiences"], private)
        ctx.audit_annotations["authentication.kubernetes.io/issued-credential-id"] = f"JTI={identity}"
        body["status"] = {"token": token, "expirationTimestamp": format_time(now + seconds)}
        return body


def sign_token(
    signer: Tokens,
    account: Object,
    lifetime: int,
    audiences: Sequence[str] = (),
    bound: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[str, str]:
    """Signed token for an account, and its ID. Without `audiences`, the token has the server's."""
    now, metadata = int(clock.now()), account["metadata"]
    identity = str(uuid.uuid4())
    claims = {
        "aud": list(audiences or signer.audiences),
        "exp": now + lifetime,
        "iat": now,
        "jti": identity,
        "kubernetes.io": {"namespace": metadata["namespace"], "serviceaccount": _ref(account), **bound},
        "nbf": now,
        "sub": f"system:serviceaccount:{metadata['namespace']}:{metadata['name']}",
    }
    return signer.sign(claims), identity


def _account(ctx: Context, body: Object) -> Object:
    """Service account in the URL. Raises 422 or 409 if the body names another one."""
    metadata = body["metadata"]
    for field, expected in (("name", ctx.name), ("namespace", ctx.namespace)):
        value = metadata.get(field, "")
        if value and value != expected:
            detail = f"must match the service account {field} if specified"
            errors = [fields.invalid(f"metadata.{field}", value, detail)]
            raise invalid(GROUP, "TokenRequest", ctx.name, errors)
    account = ctx.objects.get("serviceaccounts", ctx.name, ctx.namespace)
    if account is None:
        raise not_found("", "serviceaccounts", ctx.name)
    uid, value = account["metadata"]["uid"], metadata.get("uid", "")
    if value and value != uid:
        why = f"the UID in the token request ({value}) does not match the UID of the service account ({uid})"
        raise conflict(GROUP, "TokenRequest", ctx.name, why)
    return account


def _validate(spec: dict[str, Any]) -> None:
    seconds, path = spec["expirationSeconds"], "spec.expirationSeconds"
    errors = []
    if seconds < MIN_SECONDS:
        errors.append(fields.invalid(path, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > MAX_SECONDS:
        errors.append(fields.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds"))
    if errors:
        raise invalid(GROUP, "TokenRequest", "", errors)


def _ref(obj: Object) -> dict[str, str]:
    return {"name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"]}


def _bound_claims(ctx: Context, ref: dict[str, Any] | None) -> dict[str, Any]:
    """Claims about the object that the token is bound to. The token is invalid once that object is deleted."""
    if ref is None:
        return {}
    api_version = ref.get("apiVersion", "")
    # A malformed apiVersion (more than one slash) counts as the core group with no version.
    group, _, version = api_version.rpartition("/") if api_version.count("/") < 2 else ("", "", "")
    kind, name = ref.get("kind", ""), ref.get("name", "")
    if group or kind not in ("Pod", "Node", "Secret"):
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    if not name:
        raise bad_request("Name parameter required.")
    if problems := path_segment(name):
        raise bad_request(f"Name parameter invalid: {quoted(name)}: {';'.join(problems)}")
    resource = f"{kind.lower()}s"
    obj = ctx.objects.get(resource, name, "" if kind == "Node" else ctx.namespace)
    if obj is None:
        raise not_found("", resource, name)
    claims: dict[str, Any] = {kind.lower(): _ref(obj)}
    if kind == "Pod":
        if obj["spec"].get("serviceAccountName", "") != ctx.name:
            raise bad_request(
                f"cannot bind token for serviceaccount {quoted(ctx.name)} to pod running with different "
                "serviceaccount name."
            )
        if node_name := obj["spec"].get("nodeName"):
            node = ctx.objects.get("nodes", node_name)
            claims["node"] = _ref(node) if node else {"name": node_name}
    uid = ref.get("uid", "")
    if uid and uid != obj["metadata"]["uid"]:
        why = (
            f"the UID in the bound object reference ({uid}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise conflict(group, kind, name, why)
    return claims
