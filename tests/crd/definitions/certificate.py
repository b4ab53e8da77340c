"""CRD of a certificate manager: formats, references, private keys, renewal."""

from __future__ import annotations

from tests.crd.defining import definition, version
from tests.crd.definitions.building import (
    boolean,
    choice,
    conditions,
    integer,
    keyed,
    mapping,
    obj,
    rule,
    set_of,
    text,
)

_REFERENCE = obj(
    "name", name=text(minLength=1), kind=choice("Issuer", "ClusterIssuer", default="Issuer"), group=text()
)
_NAMES = obj(
    organizations=set_of(text(64)),
    countries=set_of(text(2, minLength=2)),
    serialNumber=text(64),
)
_KEY = obj(
    algorithm=choice("RSA", "ECDSA", "Ed25519", default="RSA"),
    encoding=choice("PKCS1", "PKCS8", default="PKCS1"),
    rotationPolicy=choice("Never", "Always", default="Always"),
    size=integer(256, 8192),
    rules=[
        rule(
            "self.algorithm != 'Ed25519' || !has(self.size)",
            "keys of this algorithm are of one size",
            fieldPath=".size",
            reason="FieldValueForbidden",
        ),
        rule(
            "self.algorithm != 'ECDSA' || !has(self.size) || self.size in [256, 384, 521]",
            messageExpression="'no curve has %d bits'.format([self.size])",
            fieldPath=".size",
        ),
    ],
)
SPEC = obj(
    "secretName issuerRef",
    secretName=text(minLength=1),
    issuerRef=_REFERENCE,
    commonName=text(64),
    subject=_NAMES,
    dnsNames=set_of(text(), 100),
    ipAddresses=set_of(text(45), 100),
    emailAddresses=set_of(text(254, format="email")),
    duration=text(32, format="duration", default="2160h"),
    renewBefore=text(32, format="duration"),
    privateKey={**_KEY, "default": {}},
    usages=set_of(choice("signing", "server auth", "client auth", "cert sign")),
    isCA=boolean(default=False),
    secretTemplate=obj(labels=mapping(text(63)), annotations=mapping(text(1024))),
    additionalOutputFormats=keyed(obj(type=choice("DER", "CombinedPEM")), "type"),
    rules=[
        rule(
            "has(self.commonName) || has(self.dnsNames) || has(self.ipAddresses) || has(self.emailAddresses)",
            "at least one name is needed",
            reason="FieldValueRequired",
        ),
        rule(
            "!has(self.renewBefore) || self.renewBefore < self.duration",
            "must be less than duration",
            fieldPath=".renewBefore",
        ),
        rule("!has(self.ipAddresses) || self.ipAddresses.all(a, isIP(a))", "must be addresses"),
        rule("self.secretName == oldSelf.secretName", "is immutable", fieldPath=".secretName"),
    ],
)
STATUS = obj(
    conditions=conditions(),
    notBefore=text(32, format="date-time"),
    notAfter=text(32, format="date-time"),
    revision=integer(0),
)
_COLUMNS = [
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "Secret", "type": "string", "jsonPath": ".spec.secretName"},
    {"name": "Issuer", "type": "string", "jsonPath": ".spec.issuerRef.name", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]
DEFINITION = definition(
    "Certificate",
    "certs.example.org",
    version(
        schema=obj("spec", spec=SPEC, status=STATUS),
        subresources={"status": {}},
        additionalPrinterColumns=_COLUMNS,
        selectableFields=[{"jsonPath": ".spec.issuerRef.name"}, {"jsonPath": ".spec.isCA"}],
    ),
)
SAMPLE = {
    "secretName": "web-tls",
    "issuerRef": {"name": "ca"},
    "commonName": "example.org",
    "dnsNames": ["example.org", "www.example.org"],
    "renewBefore": "360h",
}
DEFAULTED = {
    "duration": "2160h",
    "isCA": False,
    "privateKey": {"algorithm": "RSA", "encoding": "PKCS1", "rotationPolicy": "Always"},
}
PATCH = {"dnsNames": ["example.org"], "privateKey": {"algorithm": "ECDSA", "size": 384}}
WRONG = [
    ({"renewBefore": "9999h"}, ["spec.renewBefore"]),
    ({"privateKey": {"algorithm": "Ed25519", "size": 256}}, ["spec.privateKey.size"]),
    ({"secretName": "other"}, ["spec.secretName"]),
    ({"commonName": None, "dnsNames": None}, ["spec"]),
    ({"ipAddresses": ["10.0.0.300"]}, ["spec"]),
    ({"dnsNames": ["a", "a"]}, ["spec.dnsNames[1]"]),
    ({"issuerRef": {"kind": "Nobody"}}, ["spec.issuerRef.kind", "<nil>"]),
]
SELECTED = "spec.issuerRef.name=ca,spec.isCA=false"
CELLS = [None, "web-tls", "ca"]
