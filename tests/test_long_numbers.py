"""Numbers with thousands of digits, which Python does not convert, in every place where a client can write one.

They are out of range in Kubernetes, never an internal error.
"""

from __future__ import annotations

from typing import Any

import pytest

from kubist.model.meta.numerals import decimal
from kubist.model.meta.object import Object
from tests.live import Client

DIGITS = "9" * 5000
JSON_PATCH = "application/json-patch+json"
PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
SERVICES = "/api/v1/namespaces/default/services"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def pod(**metadata: Any) -> Object:
    return {"metadata": {"name": "long", **metadata}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def network_policy(cidr: str) -> Object:
    rule = {"from": [{"ipBlock": {"cidr": cidr}}]}
    return {"metadata": {"name": "n"}, "spec": {"podSelector": {}, "ingress": [rule]}}


def crd(path: str) -> Object:
    column = {"name": "a", "type": "integer", "jsonPath": path}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "long.io", "scope": "Namespaced", "names": {"plural": "longs", "kind": "Long"}}
    return {
        "metadata": {"name": "longs.long.io"},
        "spec": {**spec, "versions": [{**version, "additionalPrinterColumns": [column]}]},
    }


@pytest.mark.parametrize(
    ("method", "where", "body"),
    [
        *(
            ("GET", f"{PODS}?{name}={DIGITS}", None)
            for name in ("limit", "timeoutSeconds", "resourceVersion")
        ),
        *(
            ("GET", f"{PODS}/long/log?{name}={DIGITS}", None)
            for name in ("tailLines", "limitBytes", "sinceSeconds")
        ),
        ("GET", f"{PODS}/long/portforward?ports={DIGITS}", None),
        ("GET", f"{PODS}/long/portforward?ports=%C2%B2", None),
        ("GET", f"{PODS}/long:{DIGITS}/proxy/", None),
        ("DELETE", f"{PODS}/none?gracePeriodSeconds={DIGITS}", None),
        ("POST", PODS, pod(annotations={"controller.kubernetes.io/pod-deletion-cost": DIGITS})),
        ("PATCH", f"{MAPS}/long", [{"op": "remove", "path": f"/metadata/finalizers/{DIGITS}"}]),
        ("POST", BUDGETS, {"metadata": {"name": "b"}, "spec": {"minAvailable": f"{DIGITS}%"}}),
        ("POST", POLICIES, network_policy(f"10.0.0.0/{DIGITS}")),
        ("POST", POLICIES, network_policy(f"10.0.0.0/{'0' * 5000}8")),
        ("POST", SERVICES, {"metadata": {"name": "s"}, "spec": {"clusterIP": f"{DIGITS}.0.0.1"}}),
        ("POST", CRDS, crd(f".a[{DIGITS}]")),
        ("POST", CRDS, crd(f".a[{DIGITS}:{DIGITS}:{DIGITS}]")),
    ],
    ids=lambda value: value[-40:] if isinstance(value, str) else "",
)
def test_number_with_thousands_of_digits_is_no_internal_error(
    client: Client, method: str, where: str, body: Any
) -> None:
    client.ask("POST", PODS, pod())
    client.ask("POST", MAPS, {"metadata": {"name": "long", "finalizers": ["a.b/c"]}})
    path = where if method in ("GET", "PATCH") else f"{where}{'&' if '?' in where else '?'}dryRun=All"
    answer = client.ask(method, path, body, **({"content_type": JSON_PATCH} if method == "PATCH" else {}))
    assert answer.status != 500


@pytest.mark.parametrize("span", [f"{DIGITS}-", f"0-{DIGITS}", f"-{DIGITS}"])
@pytest.mark.parametrize("path", ["/openapi/v2", "/openapi/v3"])
def test_range_with_thousands_of_digits(client: Client, path: str, span: str) -> None:
    connection = client.connect()
    connection.request("GET", path, headers=client.headers(Range=f"bytes={span}"))
    assert connection.getresponse().status in (200, 206, 416)
    connection.close()


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("-7", -7), ("+7", 7), ("0" * 5000 + "8", 8), ("", 0), ("-" + "0" * 5000, 0)],
)
def test_decimal(text: str, number: int) -> None:
    assert decimal(text) == number
    assert decimal(DIGITS) > 1 << 64 and decimal(f"-{DIGITS}") < -(1 << 64)
