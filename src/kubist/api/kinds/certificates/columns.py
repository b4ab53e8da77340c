"""Columns of CertificateSigningRequests."""

from __future__ import annotations

from kubist.api.tables.cells import NONE
from kubist.api.tables.columns import AGE, NAME, Column, Table, part
from kubist.model.meta.durations import human_duration
from kubist.model.meta.object import Object


def _signer(request: Object) -> str:
    return part(request, "spec").get("signerName") or NONE


def _duration(request: Object) -> str:
    seconds = part(request, "spec").get("expirationSeconds")
    return human_duration(seconds) if seconds is not None else NONE


def _condition(request: Object) -> str:
    status = part(request, "status")
    types = {condition.get("type") for condition in status.get("conditions") or ()}
    text = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    if "Failed" in types:
        text += ",Failed"
    return text + ",Issued" if status.get("certificate") else text


TABLES = {
    "CertificateSigningRequest": Table(
        NAME,
        AGE,
        Column("SignerName", "Requested signer.", cell=_signer),
        Column("Requestor", "User that requested the certificate.", path="spec.username"),
        Column("RequestedDuration", "Requested validity of the certificate.", cell=_duration),
        Column("Condition", "State of the request.", cell=_condition),
    )
}
