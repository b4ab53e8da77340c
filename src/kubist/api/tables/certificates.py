"""Tables of the kinds of group certificates.k8s.io."""

from __future__ import annotations

from kubist.api.tables.ages import Cell, age
from kubist.api.tables.columns import AGE, NAME, Column, Table, name_of
from kubist.api.tables.shared import NONE, part
from kubist.model.meta.durations import human_duration
from kubist.model.meta.object import Object


def _request(obj: Object) -> list[Cell]:
    spec = part(obj, "spec")
    seconds = spec.get("expirationSeconds")
    return [
        name_of(obj),
        age(obj),
        spec.get("signerName") or NONE,
        spec.get("username", ""),
        human_duration(seconds) if seconds is not None else NONE,
        _condition(part(obj, "status")),
    ]


def _condition(status: Object) -> str:
    types = {condition.get("type") for condition in status.get("conditions") or ()}
    shown = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    if "Failed" in types:
        shown += ",Failed"
    return shown + ",Issued" if status.get("certificate") else shown


TABLES = {
    "CertificateSigningRequest": Table(
        (
            NAME,
            AGE,
            Column("SignerName", "Requested signer."),
            Column("Requestor", "User that requested the certificate."),
            Column("RequestedDuration", "Requested validity of the certificate."),
            Column("Condition", "State of the request."),
        ),
        _request,
    )
}
