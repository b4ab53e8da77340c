"""ResourceSlice: node selection, device attributes, and shared capacities."""

from typing import Any

import pytest

V1 = "resource.k8s.io/v1"
Causes = list[tuple[str, str]]


def slice_of(*devices: dict[str, Any], **spec: Any) -> dict[str, Any]:
    fine = {"driver": "d.e", "pool": {"name": "p", "resourceSliceCount": 1}, "allNodes": True}
    return {"spec": {**fine, "devices": list(devices), **spec}}


def shared(policy: dict[str, Any]) -> dict[str, Any]:
    capacity = {"memory": {"value": "10", "requestPolicy": policy}}
    return slice_of({"name": "a", "allowMultipleAllocations": True, "capacity": capacity})


D = "spec.devices[0]"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (slice_of(), []),
        (slice_of(allNodes=None), [("spec", "Required")]),
        (slice_of(nodeName="n"), [("spec", "Invalid")]),
        (slice_of(allNodes=None, nodeName=""), [("spec.nodeName", "Invalid"), ("spec", "Required")]),
        (slice_of(pool={"name": "p"}), [("spec.pool.resourceSliceCount", "Invalid")]),
        (slice_of({"name": "a"}, {"name": "a"}), [("spec.devices[1]", "Duplicate")]),
        (slice_of({"name": "a", "attributes": {"x": {}}}), [(f"{D}.attributes[x]", "Invalid")]),
        (
            slice_of({"name": "a", "attributes": {"x": {"version": "1.2"}}}),
            [(f"{D}.attributes[x].version", "Invalid")],
        ),
        (slice_of({"name": "a", "attributes": {"x y": {"int": 1}}}), [(f"{D}.attributes", "Invalid")]),
        (slice_of({"name": "a", "taints": [{"key": "k"}]}), [(f"{D}.taints[0].effect", "Required")]),
        (slice_of({"name": "a", "nodeName": "n"}), [(D, "Invalid")]),
        (slice_of({"name": "a"}, allNodes=None, perDeviceNodeSelection=True), [(D, "Required")]),
        (slice_of({"name": "a", "bindingConditions": ["c"]}), [(f"{D}.bindingFailureConditions", "Invalid")]),
        (
            slice_of({"name": "a"}, sharedCounters=[{"name": "c", "counters": {"x": {"value": "1"}}}]),
            [("spec", "Invalid")],
        ),
        (slice_of(*({"name": f"d{i}"} for i in range(129))), [("spec.devices", "TooMany")]),
    ],
)
def test_invalid_slice_is_rejected(kind_of: Any, given: dict[str, Any], expected: Causes) -> None:
    assert kind_of(V1, "ResourceSlice").create_errors(given) == expected


P = f"{D}.capacity[memory].requestPolicy"


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"default": "1", "validValues": ["1", "2"]}, []),
        ({"validValues": ["1"]}, [(f"{P}.default", "Required")]),
        (
            {"default": "3", "validValues": ["2", "1", "20"]},
            [
                (f"{P}.validValues[1]", "Invalid"),
                (f"{P}.validValues[2]", "Invalid"),
                (f"{P}.validValues", "Invalid"),
            ],
        ),
        ({"default": "1", "validRange": {"min": "1", "max": "9", "step": "2"}}, []),
        (
            {"default": "2", "validRange": {"min": "1", "max": "9", "step": "2"}},
            [(f"{P}.validRange.step", "Invalid")],
        ),
        (
            {"default": "1", "validRange": {"min": "2", "max": "11"}},
            [(f"{P}.validRange.min", "Invalid"), (f"{P}.validRange.max", "Invalid")],
        ),
        ({"default": "1", "validValues": ["1"], "validRange": {"min": "1"}}, [(P, "Forbidden")]),
        ({"default": "1", "validRange": {"min": "1", "step": "0"}}, []),
    ],
)
def test_invalid_request_policy_is_rejected(kind_of: Any, policy: dict[str, Any], expected: Causes) -> None:
    assert kind_of(V1, "ResourceSlice").create_errors(shared(policy)) == expected


def test_driver_is_immutable(kind_of: Any) -> None:
    slices = kind_of(V1, "ResourceSlice")
    old = slices.stored(slice_of())
    assert slices.change_errors(old, lambda s: s["spec"].update(driver="f.g")) == [("spec.driver", "Invalid")]


def test_disabled_fields_are_dropped(kind_of: Any) -> None:
    device = {
        "name": "a",
        "attributes": {"x": {"int": 1, "ints": [1]}},
        "nodeAllocatableResourceMappings": {"cpu": {}},
    }
    made = kind_of(V1, "ResourceSlice").stored(slice_of(device))
    assert made["spec"]["devices"] == [{"name": "a", "attributes": {"x": {"int": 1}}}]


def test_uppercase_driver_name_warns(kind_of: Any) -> None:
    (warning,) = kind_of(V1, "ResourceSlice").warnings(slice_of(driver="D.e"))
    assert "contains uppercase characters" in warning


def test_extended_resource_name_of_class_is_validated(kind_of: Any) -> None:
    classes = kind_of(V1, "DeviceClass")
    assert classes.create_errors("spec: {extendedResourceName: example.com/gpu}") == []
    assert classes.create_errors("spec: {extendedResourceName: cpu}") == [
        ("spec.extendedResourceName", "Invalid")
    ]
    assert classes.create_errors("spec: {selectors: [{}]}") == [("spec.selectors[0].cel", "Required")]


def test_dropped_fields_raise_generation(kind_of: Any) -> None:
    old = {"metadata": {"generation": 2}, **slice_of({"name": "a"})}
    mappings = {"cpu": {"capacityKey": "k", "allocationMultiplier": "1"}}
    new = {**old, **slice_of({"name": "a", "nodeAllocatableResourceMappings": mappings})}
    updated = kind_of(V1, "ResourceSlice").update(old, new)
    assert updated["metadata"]["generation"] == 3
    assert updated["spec"]["devices"] == [{"name": "a"}]
