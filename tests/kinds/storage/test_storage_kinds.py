"""Kinds of storage.k8s.io: validation, immutable fields and warnings."""

from typing import Any

import pytest

V1 = "storage.k8s.io/v1"
Causes = list[tuple[str, str]]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("provisioner: Example.com/Disk", []),
        ("{}", [("provisioner", "Required")]),
        (
            "{provisioner: 'a b', reclaimPolicy: Recycle}",
            [("provisioner", "Invalid"), ("reclaimPolicy", "NotSupported")],
        ),
        ("{provisioner: p, volumeBindingMode: Later}", [("volumeBindingMode", "NotSupported")]),
        ("{provisioner: p, parameters: {'': x}}", [("parameters", "Invalid")]),
        (
            "{provisioner: p, allowedTopologies: [{matchLabelExpressions: [{key: zone, values: [a, a]}]}]}",
            [("allowedTopologies[0].matchLabelExpressions[0].values[1]", "Duplicate")],
        ),
        (
            "{provisioner: p, allowedTopologies: [{matchLabelExpressions: [{key: z, values: [a, b]}]},"
            " {matchLabelExpressions: [{key: z, values: [b, a]}]}]}",
            [("allowedTopologies[1].matchLabelExpressions", "Duplicate")],
        ),
        (
            "{provisioner: p, allowedTopologies: [{}]}",
            [("allowedTopologies[0].matchLabelExpressions", "Duplicate")],
        ),
    ],
)
def test_invalid_storage_class_is_rejected(kind_of: Any, given: str, expected: Causes) -> None:
    assert kind_of(V1, "StorageClass").create_errors(given) == expected


def test_storage_class_parameters_are_immutable(kind_of: Any) -> None:
    classes = kind_of(V1, "StorageClass")
    old = classes.stored("{provisioner: p, parameters: {a: b}}")
    assert (old["reclaimPolicy"], old["volumeBindingMode"]) == ("Delete", "Immediate")
    assert classes.change_errors(old, lambda c: c.update(mountOptions=["ro"])) == []
    changed = classes.change_errors(
        old, lambda c: c.update(provisioner="q", parameters={}, reclaimPolicy="Retain")
    )
    assert changed == [("parameters", "Invalid"), ("provisioner", "Invalid"), ("reclaimPolicy", "Invalid")]


def test_deprecated_zone_labels_warn(kind_of: Any) -> None:
    topology = "[{matchLabelExpressions: [{key: failure-domain.beta.kubernetes.io/zone, values: [a]}]}]"
    (warning,) = kind_of(V1, "StorageClass").warnings(f"{{provisioner: p, allowedTopologies: {topology}}}")
    assert warning.startswith("allowedTopologies[0].matchLabelExpressions[0].key: deprecated since v1.17")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("{}", []),
        ("{fsGroupPolicy: Never}", [("spec.fsGroupPolicy", "NotSupported")]),
        ("{volumeLifecycleModes: [Odd]}", [("spec.volumeLifecycleModes", "NotSupported")]),
        ("{nodeAllocatableUpdatePeriodSeconds: 9}", [("spec.nodeAllocatableUpdatePeriodSeconds", "Invalid")]),
        ("{serviceAccountTokenInSecrets: false}", [("spec.serviceAccountTokenInSecrets", "Invalid")]),
        (
            "{tokenRequests: [{audience: a, expirationSeconds: 599}, {audience: a}]}",
            [
                ("spec.tokenRequests[0].expirationSeconds", "Invalid"),
                ("spec.tokenRequests[1].audience", "Duplicate"),
            ],
        ),
    ],
)
def test_invalid_csi_driver_is_rejected(kind_of: Any, spec: str, expected: Causes) -> None:
    assert kind_of(V1, "CSIDriver").create_errors(f"spec: {spec}") == expected


def test_csi_driver_generation_starts_with_first_change(kind_of: Any) -> None:
    drivers = kind_of(V1, "CSIDriver")
    old = drivers.stored("spec: {}")
    assert "generation" not in old["metadata"]
    assert (
        drivers.changed(old, lambda d: d["spec"].update(podInfoOnMount=True))["metadata"]["generation"] == 1
    )
    assert drivers.change_errors(old, lambda d: d["spec"].update(attachRequired=False)) == [
        ("spec.attachedRequired", "Invalid")
    ]


def test_csi_node_driver_is_immutable_except_limit(kind_of: Any) -> None:
    nodes = kind_of(V1, "CSINode")
    old = nodes.stored("spec: {drivers: [{name: a.b, nodeID: n, topologyKeys: [zone]}]}")
    assert nodes.change_errors(old, lambda n: n["spec"]["drivers"][0].update(allocatable={"count": 3})) == []
    assert nodes.change_errors(old, lambda n: n["spec"]["drivers"][0].update(nodeID="m")) == [
        ("spec.drivers", "Invalid")
    ]
    assert nodes.create_errors(
        "spec: {drivers: [{name: a.b, nodeID: n}, {name: a.b, nodeID: n, topologyKeys: ['']}]}"
    ) == [
        ("spec.drivers[1].name", "Duplicate"),
        ("spec.drivers[1]", "Required"),
        ("spec.drivers[1]", "Invalid"),
        ("spec.drivers[1]", "Invalid"),
    ]


def test_capacity_class_and_topology_are_immutable(kind_of: Any) -> None:
    capacities = kind_of(V1, "CSIStorageCapacity")
    old = capacities.stored("{storageClassName: gold, capacity: 1Gi, nodeTopology: {matchLabels: {a: b}}}")
    assert capacities.change_errors(old, lambda c: c.update(capacity="-1")) == [("capacity", "Invalid")]
    moved = capacities.change_errors(old, lambda c: c.update(storageClassName="tin", nodeTopology=None))
    assert moved == [("nodeTopology", "Invalid"), ("storageClassName", "Invalid")]


def test_attachment_must_name_exactly_one_volume(kind_of: Any) -> None:
    attachments = kind_of(V1, "VolumeAttachment")
    spec = "attacher: a.b, nodeName: n, source"
    assert attachments.create_errors(f"spec: {{{spec}: {{}}}}") == [("spec.source", "Required")]
    both = "{persistentVolumeName: v, inlineVolumeSpec: {}}"
    assert attachments.create_errors(f"spec: {{{spec}: {both}}}") == [("spec.source", "Forbidden")]


def test_attachment_status_keeps_spec_and_metadata(kind_of: Any) -> None:
    attachments = kind_of(V1, "VolumeAttachment")
    old = attachments.stored("spec: {attacher: a.b, nodeName: n, source: {persistentVolumeName: v}}")
    assert old["status"] == {"attached": False}

    def write(attachment: Any) -> None:
        attachment["metadata"]["labels"] = {"a": "b"}
        attachment["spec"]["nodeName"] = "m"
        attachment["status"] = {"attached": True}

    new = attachments.changed(old, write, "status")
    assert new["status"]["attached"] and new["spec"] == old["spec"] and "labels" not in new["metadata"]
    assert attachments.change_errors(
        old, lambda a: a["status"].update(detachError={"errorCode": -1}), "status"
    ) == [("status.detachError.errorCode", "Invalid")]


def test_volume_attributes_class_is_immutable(kind_of: Any) -> None:
    classes = kind_of(V1, "VolumeAttributesClass")
    old = classes.stored("{driverName: a.b, parameters: {iops: '1'}}")
    assert classes.change_errors(old, lambda c: c.update(parameters={})) == [
        ("parameters", "Forbidden"),
        ("parameters", "Required"),
    ]
