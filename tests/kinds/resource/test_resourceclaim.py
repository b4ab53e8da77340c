"""ResourceClaim: validation of requests and of the allocation status."""

from typing import Any

import pytest

V1 = "resource.k8s.io/v1"
Causes = list[tuple[str, str]]
R = "spec.devices.requests"


class Namespaces:
    def __init__(self, **labels: str) -> None:
        self.labels = labels

    def get(self, resource: str, name: str, namespace: str = "", *, group: str = "") -> dict[str, Any]:
        return {"metadata": {"labels": {k.replace("_", "-"): v for k, v in self.labels.items()}}}


@pytest.fixture
def claims(kind_of: Any) -> Any:
    kind = kind_of(V1, "ResourceClaim")
    kind.context.objects = Namespaces()
    return kind


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ("{}", []),
        ("{requests: [{name: a}]}", [(f"{R}[0]", "Required")]),
        ("{requests: [{name: A, exactly: {deviceClassName: c}}]}", [(f"{R}[0].name", "Invalid")]),
        ("{requests: [{name: a, exactly: {}}]}", [(f"{R}[0].exactly.deviceClassName", "Required")]),
        (
            "{requests: [{name: a, exactly: {deviceClassName: c, allocationMode: All, count: 1}}]}",
            [(f"{R}[0].exactly.count", "Invalid")],
        ),
        (
            "{requests: [{name: a, exactly: {deviceClassName: c}},"
            " {name: a, exactly: {deviceClassName: c}}]}",
            [(f"{R}[1]", "Duplicate")],
        ),
        (
            "{requests: [{name: a,"
            " exactly: {deviceClassName: c, tolerations: [{operator: Exists, value: x}]}}]}",
            [(f"{R}[0].exactly.tolerations[0].value", "Invalid")],
        ),
        (
            "{constraints: [{matchAttribute: numa}]}",
            [("spec.devices.constraints[0].matchAttribute", "Invalid")],
        ),
        ("{constraints: [{}]}", [("spec.devices.constraints[0]", "Required")]),
        (
            "{config: [{requests: [b], opaque: {driver: d.e, parameters: {}}}]}",
            [("spec.devices.config[0].requests[0]", "Invalid")],
        ),
        (
            "{config: [{opaque: {driver: d.e, parameters: [1]}}]}",
            [("spec.devices.config[0].opaque.parameters", "Invalid")],
        ),
        (
            "{requests: [{name: a, exactly: {deviceClassName: c, adminAccess: true}}]}",
            [(f"{R}[0].adminAccess", "Forbidden")],
        ),
    ],
)
def test_invalid_device_requests_are_rejected(claims: Any, devices: str, expected: Causes) -> None:
    assert claims.create_errors(f"spec: {{devices: {devices}}}") == expected


def test_admin_access_requires_namespace_label(claims: Any) -> None:
    claims.context.objects.get = lambda *args, **options: {
        "metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}
    }
    assert (
        claims.create_errors(
            "spec: {devices: {requests: [{name: a, exactly: {deviceClassName: c, adminAccess: true}}]}}"
        )
        == []
    )


@pytest.fixture
def claim(claims: Any) -> Any:
    request = "{name: a, firstAvailable: [{name: x, deviceClassName: c}]}"
    made = claims.stored(f"spec: {{devices: {{requests: [{request}]}}}}")
    asked = made["spec"]["devices"]["requests"][0]["firstAvailable"][0]
    assert (asked["allocationMode"], asked["count"]) == ("ExactCount", 1)
    return made


RESULT = {"request": "a/x", "driver": "d.e", "pool": "p", "device": "gpu-0"}
CONSUMER = {"resource": "pods", "name": "p", "uid": "u"}


def allocate(obj: Any) -> None:
    obj["status"] = {"allocation": {"devices": {"results": [RESULT]}}, "reservedFor": [CONSUMER]}


def test_allocation_names_a_request_and_is_immutable(claims: Any, claim: Any) -> None:
    assert claims.change_errors(claim, allocate, "status") == []
    allocated = claims.changed(claim, allocate, "status")

    def move(obj: Any) -> None:
        obj["status"]["allocation"]["devices"]["results"][0]["device"] = "gpu-1"

    assert claims.change_errors(allocated, move, "status") == [("status.allocation", "Invalid")]
    assert claims.change_errors(allocated, lambda c: c["status"].clear(), "status") == []

    def elsewhere(obj: Any) -> None:
        obj["status"] = {"allocation": {"devices": {"results": [{**RESULT, "request": "b"}]}}}

    assert claims.change_errors(claim, elsewhere, "status") == [
        ("status.allocation.devices.results[0].request", "Invalid")
    ]


def test_reserved_for_requires_allocation(claims: Any, claim: Any) -> None:
    assert claims.change_errors(claim, lambda c: c.update(status={"reservedFor": [CONSUMER]}), "status") == [
        ("status.reservedFor", "Forbidden")
    ]


def test_device_status_is_dropped_with_its_allocation(claims: Any, claim: Any) -> None:
    device = {"driver": "d.e", "pool": "p", "device": "gpu-0"}

    def report(obj: Any) -> None:
        allocate(obj)
        obj["status"]["devices"] = [device]

    reported = claims.changed(claim, report, "status")
    assert reported["status"]["devices"]
    freed = claims.changed(reported, lambda c: c["status"].pop("allocation"), "status")
    assert "devices" not in freed["status"]
    assert claims.change_errors(claim, lambda c: c.update(status={"devices": [device]}), "status") == [
        ("status.devices[0]", "Invalid")
    ]


def test_specs_of_claims_and_templates_are_immutable(kind_of: Any, claims: Any, claim: Any) -> None:
    assert claims.change_errors(claim, lambda c: c["spec"]["devices"].update(requests=[])) == [
        ("spec", "Invalid")
    ]
    templates = kind_of(V1, "ResourceClaimTemplate")
    template = templates.stored("spec: {metadata: {labels: {a: b}}, spec: {devices: {}}}")
    assert templates.change_errors(template, lambda t: t["spec"].update(metadata={})) == [("spec", "Invalid")]
    assert templates.create_errors("spec: {metadata: {name: n}, spec: {devices: {}}}") == [
        ("spec.metadata.name", "Forbidden")
    ]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"labels": {"a": "b"}, "annotations": {"c": "d"}}, []),
        (
            {"name": "x", "uid": "u"},
            [("spec.metadata.name", "Forbidden"), ("spec.metadata.uID", "Forbidden")],
        ),
        ({"deletionGracePeriodSeconds": 0}, [("spec.metadata.deletionGracePeriodSeconds", "Forbidden")]),
        ({"labels": {"a b": ""}}, [("spec.metadata.labels", "Invalid")]),
        (
            {"finalizers": ["a.b/c"], "ownerReferences": [{"name": "o"}]},
            [("spec.metadata.ownerReferences", "Forbidden"), ("spec.metadata.finalizers", "Forbidden")],
        ),
    ],
)
def test_template_metadata_allows_labels_and_annotations_only(
    kind_of: Any, metadata: Any, expected: list[tuple[str, str]]
) -> None:
    request = {"name": "r", "exactly": {"deviceClassName": "c"}}
    spec = {"metadata": metadata, "spec": {"devices": {"requests": [request]}}}
    assert kind_of("resource.k8s.io/v1", "ResourceClaimTemplate").create_errors({"spec": spec}) == expected
