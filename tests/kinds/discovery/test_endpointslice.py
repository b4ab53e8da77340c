from typing import Any

import pytest


@pytest.fixture
def slices(kind_of: Any) -> Any:
    return kind_of("discovery.k8s.io/v1", "EndpointSlice")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{addressType: IPv4, endpoints: [{addresses: [10.0.0.1]}], ports: [{port: 80}]}", []),
        (
            "{endpoints: [{addresses: []}]}",
            [("addressType", "Required"), ("endpoints[0].addresses", "Required")],
        ),
        (
            "{addressType: IPv4, endpoints: [{addresses: ['fd00::1']}]}",
            [("endpoints[0].addresses", "Invalid")],
        ),
        (
            "{addressType: IPv6, endpoints: [{addresses: ['FD00::1', '::1']}]}",
            [
                ("endpoints[0].addresses[0]", "Invalid"),
                ("endpoints[0].addresses[1]", "Invalid"),
            ],
        ),
        (
            "{addressType: FQDN, endpoints: [{addresses: [plain, a.b.]}]}",
            [("endpoints[0].addresses[0]", "Invalid")],
        ),
        ("{addressType: IPv4, ports: [{}, {}]}", [("ports[1].name", "Duplicate")]),
        ("{addressType: IPv4, ports: [{protocol: ''}]}", [("ports[0].protocol", "NotSupported")]),
        (
            "{addressType: IPv4, endpoints: [{addresses: [10.0.0.1], hints: {forZones: [{name: a}, "
            "{name: a}]}}]}",
            [("endpoints[0].hints.forZones[1].name", "Duplicate")],
        ),
    ],
)
def test_invalid_slice_is_rejected(slices: Any, text: str, expected: list[tuple[str, str]]) -> None:
    assert slices.create_errors(text) == expected


def test_unchanged_endpoints_are_not_validated_again(slices: Any) -> None:
    old = "{addressType: IPv4, endpoints: [{addresses: [127.0.0.1]}]}"
    assert slices.update_errors(old, old.replace("IPv4", "IPv6")) == [("addressType", "Invalid")]


def test_label_change_raises_generation(slices: Any) -> None:
    old = "{metadata: {generation: 3}, addressType: IPv4}"
    new = "{metadata: {generation: 3, labels: {a: b}}, addressType: IPv4}"
    assert slices.update(old, new)["metadata"]["generation"] == 4


def test_dropped_topology_raises_generation(slices: Any) -> None:
    old = "{metadata: {generation: 3}, addressType: IPv4, endpoints: [{addresses: [10.0.0.1]}]}"
    new = old.replace("}]}", ", deprecatedTopology: {zone: a}}]}")
    updated = slices.update(old, new)
    assert updated["metadata"]["generation"] == 4
    assert updated["endpoints"] == [{"addresses": ["10.0.0.1"], "conditions": {}}]
