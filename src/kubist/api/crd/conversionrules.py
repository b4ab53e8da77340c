"""Validates `spec.conversion` of a CRD: the strategy, and for webhooks the client config and review versions."""

from __future__ import annotations

from kubist.api.crd import definition
from kubist.api.crd.webhook import REVIEW_VERSIONS, valid_ca_bundle
from kubist.api.resources.strategy import Errors
from kubist.api.webhooks.client_config import validate_service, validate_url
from kubist.model.meta import fields, names
from kubist.model.meta.object import Object


def _webhook(crd: Object | None) -> Object:
    conversion = crd["spec"].get("conversion") if crd is not None else None
    return (conversion or {}).get("webhook") or {}


def validate_conversion(conversion: Object, old: Object | None) -> Errors:
    """Validates the conversion of a CRD. `old` is the CRD before an update, or None."""
    path = "spec.conversion"
    strategy = conversion.get("strategy") or ""
    webhook = conversion.get("webhook")
    if not strategy:
        return [fields.required(f"{path}.strategy")]
    errors: Errors = []
    if strategy not in ("None", "Webhook"):
        errors.append(fields.not_supported(f"{path}.strategy", strategy, ("None", "Webhook")))
    client = (webhook or {}).get("clientConfig")
    versions = (webhook or {}).get("conversionReviewVersions") or []
    where = f"{path}.webhookClientConfig"
    if strategy != "Webhook":
        why = "should not be set when strategy is not set to Webhook"
        if client is not None:
            errors.append(fields.forbidden(where, why))
        if versions:
            errors.append(fields.forbidden(f"{path}.conversionReviewVersions", why))
        return errors
    if client is None:
        errors.append(fields.required(where, "required when strategy is set to Webhook"))
    else:
        url, service = client.get("url"), client.get("service")
        if (url is None) == (service is None):
            errors.append(fields.required(where, "exactly one of url or service is required"))
        elif url is not None:
            errors += validate_url(url, f"{where}.url")
        else:
            errors += validate_service(service, f"{where}.service")
        bundle = client.get("caBundle")
        if bundle and not _tolerates_ca_bundle(old) and not valid_ca_bundle(bundle):
            why = "unable to load root certificates: unable to parse bytes as PEM block"
            errors.append(fields.invalid(f"{where}.caBundle", bundle, why))
    return errors + _review_versions(versions, f"{path}.conversionReviewVersions", _webhook(old))


def _tolerates_ca_bundle(old: Object | None) -> bool:
    """Whether an invalid caBundle is accepted. It is, until the CRD is established (it then blocks
    establishing), and when the old CRD already has an invalid caBundle."""
    if old is None or not definition.established(old):
        return True
    before: str = (_webhook(old).get("clientConfig") or {}).get("caBundle") or ""
    return bool(before) and not valid_ca_bundle(before)


def _review_versions(versions: list[str], path: str, webhook_before: Object) -> Errors:
    if not versions:
        return [fields.required(path)]
    errors: Errors = []
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            errors.append(fields.invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        seen.add(version)
        errors += [fields.invalid(f"{path}[{index}]", version, why) for why in names.dns_1035_label(version)]
    before = webhook_before.get("conversionReviewVersions")
    required = not before or any(version in REVIEW_VERSIONS for version in before)
    if required and not any(version in REVIEW_VERSIONS for version in versions):
        why = f"must include at least one of {', '.join(REVIEW_VERSIONS)}"
        errors.append(fields.invalid(path, versions, why))
    return errors
