"""CertificateSigningRequest: spec.username and the related fields are the requesting user's. `/approval` approves
it, and `/status` issues the certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from kubist.api.kinds.certificates import pem
from kubist.api.kinds.shared.values import repeats
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy, Subresource, Update
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import fields, names, objectmeta
from kubist.model.meta.fields import FieldError
from kubist.model.meta.object import Object

LEGACY_SIGNER = "kubernetes.io/legacy-unknown"
USAGES = frozenset(
    (
        "any",
        "cert sign",
        "client auth",
        "code signing",
        "content commitment",
        "crl sign",
        "data encipherment",
        "decipher only",
        "digital signature",
        "email protection",
        "encipher only",
        "ipsec end system",
        "ipsec tunnel",
        "ipsec user",
        "key agreement",
        "key encipherment",
        "microsoft sgc",
        "netscape sgc",
        "ocsp signing",
        "s/mime",
        "server auth",
        "signing",
        "timestamping",
    )
)
_FINAL = ("Approved", "Denied", "Failed")
"""Condition types that allow only status True and cannot be removed."""


def _conditions(csr: Object) -> list[Object]:
    return (csr.get("status") or {}).get("conditions") or []


def _of_type(csr: Object, kind: str) -> list[Object]:
    return [condition for condition in _conditions(csr) if condition.get("type") == kind]


def _any_name(_name: str, _prefix: bool) -> list[str]:
    return []


class CertificateSigningRequestStatus(Update):
    """`/status`: the certificate, and conditions other than Approved and Denied."""

    reset_fields = ("spec", "status.conditions")
    restored_fields = ("spec",)
    metadata_rules = ("object",)

    def prepare(self, ctx: Context, new: Object, old: Object) -> None:
        for kind in ("Approved", "Denied"):
            before = _of_type(old, kind)
            places = [i for i, condition in enumerate(_conditions(new)) if condition.get("type") == kind]
            if len(before) == len(places):
                for place, condition in zip(places, before, strict=True):
                    _conditions(new)[place] = condition
        _fill_times(ctx, new, old)

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        return _validate_update(new, old, may_issue=True)


class CertificateSigningRequestApproval(Update):
    """`/approval`: the conditions only."""

    reset_fields = ("spec", "status.certificate")
    restored_fields = ("spec",)
    metadata_rules = ("object",)

    def prepare(self, ctx: Context, new: Object, old: Object) -> None:
        _fill_times(ctx, new, old)
        status = dict(old.get("status") or {})
        status.pop("conditions", None)
        if _conditions(new):
            status["conditions"] = _conditions(new)
        new["status"] = status

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        return _validate_update(new, old, may_approve=True)


class CertificateSigningRequestStrategy(Strategy):
    namespace_selectable = False
    reset_fields = ("spec", "status")
    first_status: ClassVar = {}
    metadata_rules = ("object",)
    field_labels: Mapping[str, str] = {"spec.signerName": "spec.signerName"}
    subresources: Mapping[str, Subresource] = {
        "approval": CertificateSigningRequestApproval(),
        "status": CertificateSigningRequestStatus(),
    }

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        return []

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        if old is not None:
            return
        spec = new.setdefault("spec", {})
        for name in ("username", "uid", "groups", "extra"):
            spec.pop(name, None)
        spec.update(ctx.user.info())

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        return _validate(new, None) if old is None else _validate_update(new, old)


def _fill_times(ctx: Context, new: Object, old: Object) -> None:
    before = {
        (condition.get("type", ""), condition.get("status")): condition["lastTransitionTime"]
        for condition in reversed(_conditions(old))
        if condition.get("lastTransitionTime")
    }
    for condition in _conditions(new):
        condition["lastUpdateTime"] = condition.get("lastUpdateTime") or ctx.now
        if condition.get("lastTransitionTime"):
            continue
        identity = condition.get("type", ""), condition.get("status")
        condition["lastTransitionTime"] = before.get(identity, ctx.now)


def _validate(csr: Object, old: Object | None) -> Errors:
    """Validates the request. An update accepts usages, conditions and a certificate that were already invalid."""
    spec = csr.get("spec") or {}
    before = (old or {}).get("spec") or {}
    errors = []
    wrong = pem.request_error(spec.get("request") or "")
    if wrong:
        errors.append(fields.invalid("spec.request", spec.get("request"), wrong))
    usages = spec.get("usages") or []
    if not usages:
        errors.append(fields.required("spec.usages"))
    if USAGES.issuperset(before.get("usages") or ()):
        errors += [
            fields.not_supported(f"spec.usages[{index}]", usage, sorted(USAGES))
            for index, usage in enumerate(usages)
            if usage not in USAGES
        ]
    if not repeats(before.get("usages") or []):
        errors += [fields.duplicate(f"spec.usages[{index}]", usages[index]) for index in repeats(usages)]
    signer = spec.get("signerName", "")
    if signer == LEGACY_SIGNER and before.get("signerName") != LEGACY_SIGNER:
        why = "the legacy signerName is not allowed via this API version"
        errors.append(fields.invalid("spec.signerName", signer, why))
    else:
        errors += _validate_signer_name(signer, "spec.signerName")
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < 600:
        why = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.append(fields.invalid("spec.expirationSeconds", seconds, why))
    errors += _validate_conditions(csr, old or {})
    return errors + _validate_certificate(csr, old)


def _validate_conditions(csr: Object, old: Object) -> Errors:
    path = "status.conditions"
    types = [condition.get("type", "") for condition in _conditions(csr)]
    old_types = [condition.get("type", "") for condition in _conditions(old)]
    may_repeat, may_contradict = bool(repeats(old_types)), {"Approved", "Denied"}.issubset(old_types)
    no_type = "" in old_types
    seen: set[str] = set()
    errors: Errors = []
    for index, condition in enumerate(_conditions(csr)):
        kind = types[index]
        if not kind and not no_type:
            errors.append(fields.required(f"{path}[{index}].type"))
        status = condition.get("status", "")
        allowed = ("True",) if kind in _FINAL else ("False", "True", "Unknown")
        if not status:
            errors.append(fields.required(f"{path}[{index}].status"))
        elif status not in allowed:
            errors.append(fields.not_supported(f"{path}[{index}].status", status, allowed))
        other = {"Approved": "Denied", "Denied": "Approved"}.get(kind)
        if other in seen and not may_contradict:
            why = "Approved and Denied conditions are mutually exclusive"
            errors.append(fields.invalid(path, kind, why))
        if kind in seen and not may_repeat:
            errors.append(fields.duplicate(f"{path}[{index}].type", kind))
        seen.add(kind)
    return errors


def _certificate(csr: Object | None) -> str:
    certificate: str = ((csr or {}).get("status") or {}).get("certificate") or ""
    return certificate


def _validate_certificate(csr: Object, old: Object | None) -> Errors:
    if old is not None and (
        _certificate(csr) == _certificate(old) or pem.certificates_error(_certificate(old))
    ):
        return []
    wrong = pem.certificates_error(_certificate(csr))
    return [fields.invalid("status.certificate", "<certificate data>", wrong)] if wrong else []


def _validate_update(
    new: Object, old: Object, *, may_approve: bool = False, may_issue: bool = False
) -> Errors:
    path = "status.conditions"
    errors = _validate(new, old)
    errors += [
        fields.forbidden(path, f'updates may not remove a condition of type "{kind}"')
        for kind in _FINAL
        if len(_of_type(new, kind)) < len(_of_type(old, kind))
    ]
    for kind in () if may_approve else ("Approved", "Denied"):
        after, before = _of_type(new, kind), _of_type(old, kind)
        if len(after) > len(before):
            errors.append(fields.forbidden(path, f'updates may not add a condition of type "{kind}"'))
        elif len(after) == len(before) and after != before:
            errors.append(fields.forbidden(path, f'updates may not modify a condition of type "{kind}"'))
    if _certificate(new) != _certificate(old):
        if not may_issue:
            errors.append(fields.forbidden("status.certificate", "updates may not set certificate content"))
        elif _certificate(old):
            why = "updates may not modify existing certificate content"
            errors.append(fields.forbidden("status.certificate", why))
    return errors + objectmeta.validate_update(new["metadata"], old["metadata"])


def _validate_signer_name(name: str, path: str) -> list[FieldError]:
    if not name:
        return [fields.required(path)]
    if name.count("/") != 1:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [fields.invalid(path, name, why)]
    domain, _, rest = name.partition("/")
    errors = [fields.too_long(path, 253)] if len(domain) > 253 else []
    labels = domain.split(".")
    errors += _first_bad(labels, names.dns_label, domain, path)
    if len(labels) < 2:
        why = "should be a domain with at least two segments separated by dots"
        errors.append(fields.invalid(path, domain, why))
    errors += _first_bad(rest.split("."), names.dns_subdomain, rest, path)
    if len(name) > 253 + 1 + 253 + 1 + 63:
        errors.append(fields.too_long(path, 253 + 1 + 253 + 1 + 63))
    return errors


def _first_bad(
    labels: list[str], check: Callable[[str], list[str]], value: str, path: str
) -> list[FieldError]:
    """Errors of the first invalid label only, as kube-apiserver reports them."""
    for label in labels:
        messages = check(label)
        if messages:
            return [
                fields.invalid(path, value, f"validating label {quoted(label)}: {message}")
                for message in messages
            ]
    return []


strategy = CertificateSigningRequestStrategy()
