from typing import Any

import pytest

GROUP = "networking.k8s.io/v1"
REFUSED: list[tuple[str, str, list[tuple[str, str]]]] = [
    ("Ingress", "{spec: {}}", [("spec", "Invalid")]),
    (
        "Ingress",
        "{spec: {defaultBackend: {service: {name: s, port: {}}}}}",
        [("spec.defaultBackend", "Required")],
    ),
    (
        "Ingress",
        "{spec: {defaultBackend: {service: {name: 0s, port: {number: 80, name: x}}}}}",
        [("spec.defaultBackend", "Invalid")],
    ),
    (
        "Ingress",
        "{spec: {defaultBackend: {resource: {kind: K, name: n}, service: {name: s}}}}",
        [("spec.defaultBackend", "Invalid")],
    ),
    (
        "Ingress",
        "{spec: {rules: [{host: 1.2.3.4}, {host: '*.a.b'}, {host: 'a.*'}, {http: {paths: []}}]}}",
        [
            ("spec.rules[0].host", "Invalid"),
            ("spec.rules[2].host", "Invalid"),
            ("spec.rules[3].http.paths", "Required"),
        ],
    ),
    (
        "Ingress",
        "{spec: {rules: [{http: {paths: [{path: a/../b, pathType: Prefix}, {path: b, "
        "pathType: ImplementationSpecific}, {path: /}]}}]}}",
        [
            ("spec.rules[0].http.paths[0].path", "Invalid"),
            ("spec.rules[0].http.paths[0].path", "Invalid"),
            ("spec.rules[0].http.paths[0].backend", "Invalid"),
            ("spec.rules[0].http.paths[1].path", "Invalid"),
            ("spec.rules[0].http.paths[1].backend", "Invalid"),
            ("spec.rules[0].http.paths[2].pathType", "Required"),
        ],
    ),
    (
        "IngressClass",
        "{spec: {controller: example.com/x, parameters: {kind: K, name: n, namespace: d}}}",
        [("spec.parameters.namespace", "Forbidden")],
    ),
    (
        "IngressClass",
        "{spec: {controller: plain, parameters: {kind: K, name: n, scope: Namespace}}}",
        [
            ("spec.controller", "Invalid"),
            ("spec.parameters.namespace", "Required"),
        ],
    ),
    (
        "NetworkPolicy",
        "{spec: {ingress: [{from: [{}, {podSelector: {}, ipBlock: {cidr: 10.0.0.0/8}}]}]}}",
        [
            ("spec.ingress[0].from[0]", "Required"),
            ("spec.ingress[0].from[1]", "Forbidden"),
        ],
    ),
    (
        "NetworkPolicy",
        "{spec: {egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.0.0.0/8, 11.0.0.0/24, "
        "10.1.0.0/16, 'fd00::/64']}}]}]}}",
        [
            ("spec.egress[0].to[0].ipBlock.except[0]", "Invalid"),
            ("spec.egress[0].to[0].ipBlock.except[1]", "Invalid"),
            ("spec.egress[0].to[0].ipBlock.except[3]", "Invalid"),
        ],
    ),
    (
        "NetworkPolicy",
        "{spec: {ingress: [{ports: [{port: 80, endPort: 79}, {port: web, endPort: 90}, "
        "{endPort: 1}, {protocol: ICMP}]}]}}",
        [
            ("spec.ingress[0].ports[0].endPort", "Invalid"),
            ("spec.ingress[0].ports[1].endPort", "Invalid"),
            ("spec.ingress[0].ports[2].endPort", "Invalid"),
            ("spec.ingress[0].ports[3].protocol", "NotSupported"),
        ],
    ),
    ("IPAddress", "{spec: {}}", [("spec.parentRef", "Required")]),
    (
        "IPAddress",
        "{spec: {parentRef: {namespace: a/b}}}",
        [
            ("spec.parentRef.resource", "Required"),
            ("spec.parentRef.name", "Required"),
            ("spec.parentRef.namespace", "Invalid"),
        ],
    ),
    ("ServiceCIDR", "{spec: {}}", [("spec.cidrs", "Required")]),
    ("ServiceCIDR", "{spec: {cidrs: [10.0.0.0/24, 10.1.0.0/24]}}", [("spec.cidrs", "Invalid")]),
    (
        "ServiceCIDR",
        "{spec: {cidrs: [10.0.0.1/24, 'FD00::/64']}}",
        [
            ("spec.cidrs[0]", "Invalid"),
            ("spec.cidrs[1]", "Invalid"),
        ],
    ),
]


@pytest.mark.parametrize(("kind", "text", "expected"), REFUSED)
def test_invalid_object_is_rejected_on_create(
    kind_of: Any, kind: str, text: str, expected: list[tuple[str, str]]
) -> None:
    assert kind_of(GROUP, kind).create_errors(text) == expected


@pytest.mark.parametrize(
    ("kind", "old", "new", "expected"),
    [
        ("ServiceCIDR", "{spec: {cidrs: [10.0.0.0/24]}}", "{spec: {cidrs: [10.0.0.0/24, 'fd00::/64']}}", []),
        (
            "ServiceCIDR",
            "{spec: {cidrs: [10.0.0.0/24]}}",
            "{spec: {cidrs: [10.0.1.0/24]}}",
            [("spec.cidrs[0]", "Invalid")],
        ),
        ("ServiceCIDR", "{spec: {cidrs: [10.0.0.0/24]}}", "{spec: {}}", [("spec.cidrs", "Invalid")]),
        (
            "IngressClass",
            "{spec: {controller: a.b/c}}",
            "{spec: {controller: a.b/d}}",
            [("spec.controller", "Invalid")],
        ),
    ],
)
def test_update_rules(kind_of: Any, kind: str, old: str, new: str, expected: Any) -> None:
    causes = kind_of(GROUP, kind).update_errors(old, new)
    assert [cause for cause in causes if not cause[0].startswith("metadata")] == expected


@pytest.mark.parametrize(
    ("text", "types"),
    [("{}", ["Ingress"]), ("{egress: [{}]}", ["Ingress", "Egress"]), ("{policyTypes: [Egress]}", ["Egress"])],
)
def test_policy_types_default_from_rules(kind_of: Any, text: str, types: list[str]) -> None:
    assert kind_of(GROUP, "NetworkPolicy").create(f"spec: {text}")["spec"]["policyTypes"] == types


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("10.0.0.1", True),
        ("2001:db8::1", True),
        ("010.0.0.1", False),
        ("2001:DB8::1", False),
        ("::ffff:1.2.3.4", False),
    ],
)
def test_ip_address_name_must_be_canonical(kind_of: Any, name: str, valid: bool) -> None:
    assert (kind_of(GROUP, "IPAddress").strategy.validate_name(name, False) == []) is valid
