"""Claims and volumes of `--workloads`: match, binding, provisioning, reclaim, and ephemeral volumes."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.cluster.control.workloads.persistentvolume_binder import best_volume, mismatch
from kubist.model.meta.object import Object
from kubist.testing import Cluster
from tests.waiting import wait_for

pytestmark = pytest.mark.kubist(workloads=True)
MERGE = "application/merge-patch+json"


def volume(name: str, size: str = "1Gi", **spec: Any) -> Object:
    body = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    metadata = {"name": name, "labels": {"disk": name}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": {**body, **spec}}


def claim(name: str = "c", size: str = "1Gi", **spec: Any) -> Object:
    body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": body}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (claim(size="1500Mi"), "two"),
        (claim(size="3Gi"), "five"),
        (claim(size="9Gi"), None),
        (claim(storageClassName="slow"), "slow"),
        (claim(accessModes=["ReadWriteMany"]), None),
        (claim(volumeMode="Block"), None),
        (claim(selector={"matchLabels": {"disk": "five"}}), "five"),
        (claim("other"), "reserved"),
    ],
)
def test_smallest_suitable_volume_is_chosen(wanted: Object, found: str | None) -> None:
    wanted["metadata"]["uid"] = "uid"
    reference = {"namespace": "default", "name": "other"}
    volumes = [
        volume("five", "5Gi"),
        volume("two", "2Gi"),
        volume("slow", "1Gi", storageClassName="slow"),
        volume("reserved", "1Gi", claimRef=reference),
        volume("taken", "1Gi", claimRef={**reference, "name": "c", "uid": "somebody else"}),
    ]
    best = best_volume(volumes, wanted)
    assert (best["metadata"]["name"] if best else None) == found


def phase(cluster: Cluster, reference: str) -> str:
    return str((cluster.get(reference).get("status") or {}).get("phase"))


def reasons(cluster: Cluster) -> set[str]:
    return {event["reason"] for event in cluster.list("events")}


def test_claim_gets_an_existing_volume_and_releases_it(cluster: Cluster) -> None:
    cluster.load(volume("large", "5Gi"))
    wait_for(lambda: phase(cluster, "pv/large") == "Available")
    cluster.load(claim(storageClassName="", size="2Gi"))
    bound = cluster.wait("pvc/c", lambda held: held["status"].get("phase") == "Bound")
    assert bound["spec"]["volumeName"] == "large"
    assert bound["status"]["capacity"] == {"storage": "5Gi"}
    assert bound["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"
    assert cluster.get("pv/large")["spec"]["claimRef"]["uid"] == bound["metadata"]["uid"]
    cluster.delete("pvc/c")
    wait_for(lambda: phase(cluster, "pv/large") == "Released")


def messages(cluster: Cluster, name: str) -> set[tuple[str, str]]:
    return {
        (event["reason"], event["message"])
        for event in cluster.list("events")
        if event["involvedObject"]["name"] == name
    }


def test_claim_is_not_bound_to_a_named_volume_that_does_not_satisfy_it(cluster: Cluster) -> None:
    cluster.load(volume("small"), volume("mine"))
    cluster.load(claim("large", "2Gi", storageClassName="", volumeName="small"))
    too_small = ("VolumeMismatch", 'Cannot bind to requested volume "small": requested PV is too small')
    wait_for(lambda: too_small in messages(cluster, "large"))
    assert phase(cluster, "pvc/large") == "Pending"
    grown = {"spec": {"capacity": {"storage": "2Gi"}}}
    cluster.request("PATCH", "/api/v1/persistentvolumes/small", grown, MERGE)
    cluster.clock.advance("15s")
    cluster.wait("pvc/large", lambda held: held["status"].get("phase") == "Bound")
    cluster.load(claim("second", storageClassName="", volumeName="small"))
    taken = ("FailedBinding", 'volume "small" already bound to a different claim.')
    wait_for(lambda: taken in messages(cluster, "second"))


@pytest.mark.parametrize(
    ("made", "wanted", "why"),
    [
        (volume("v"), claim(), ""),
        (volume("v"), claim(storageClassName="fast"), "storageClassName does not match"),
        (volume("v"), claim(volumeAttributesClassName="g"), "volumeAttributesClassName does not match"),
        (volume("v"), claim(volumeMode="Block"), "incompatible volumeMode"),
        (volume("v"), claim(accessModes=["ReadWriteMany"]), "incompatible accessMode"),
    ],
)
def test_reason_why_a_volume_does_not_satisfy_a_claim(made: Object, wanted: Object, why: str) -> None:
    assert mismatch(made, wanted) == why


def test_claim_without_class_waits_for_a_volume(cluster: Cluster) -> None:
    cluster.load(claim(storageClassName=""))
    wait_for(lambda: "FailedBinding" in reasons(cluster))
    assert phase(cluster, "pvc/c") == "Pending"
    cluster.load(volume("v"))
    cluster.wait("pvc/c", lambda held: held["status"].get("phase") == "Bound")


def test_provisioned_volume_grows_and_goes_with_its_claim(cluster: Cluster) -> None:
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}
    cluster.load({**storage, "provisioner": "example.com/disk", "allowVolumeExpansion": True})
    cluster.load(claim(storageClassName="fast"))
    bound = cluster.wait("pvc/c", lambda held: held["status"].get("phase") == "Bound")
    name = bound["spec"]["volumeName"]
    wait_for(lambda: "ProvisioningSucceeded" in reasons(cluster))
    assert cluster.get(f"pv/{name}")["spec"]["storageClassName"] == "fast"
    path = "/api/v1/namespaces/default/persistentvolumeclaims/c"
    cluster.request("PATCH", path, {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}, MERGE)
    cluster.wait("pvc/c", lambda held: held["status"]["capacity"] == {"storage": "3Gi"})
    assert cluster.get(f"pv/{name}")["spec"]["capacity"] == {"storage": "3Gi"}
    cluster.delete("pvc/c")
    cluster.wait(f"pv/{name}", "delete")


def test_claim_waits_for_its_first_consumer(cluster: Cluster) -> None:
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"}}
    mode = "WaitForFirstConsumer"
    cluster.load({**storage, "provisioner": "example.com/disk", "volumeBindingMode": mode})
    cluster.load(claim(storageClassName="late"))
    wait_for(lambda: "WaitForFirstConsumer" in reasons(cluster))
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    spec = {"containers": [{"name": "c", "image": "nginx"}], "volumes": volumes}
    cluster.load({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    cluster.wait("pod/p", "Ready")
    assert phase(cluster, "pvc/c") == "Bound"


def test_claim_of_a_deleted_volume_is_lost(cluster: Cluster) -> None:
    cluster.load(claim())
    bound = cluster.wait("pvc/c", lambda held: held["status"].get("phase") == "Bound")
    path = f"/api/v1/persistentvolumes/{bound['spec']['volumeName']}"
    cluster.request("DELETE", path)
    cluster.request("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
    wait_for(lambda: phase(cluster, "pvc/c") == "Lost")
    wait_for(lambda: "ClaimLost" in reasons(cluster))


def test_ephemeral_volume_gets_a_claim_that_the_pod_owns(cluster: Cluster) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": claim()["spec"]}
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
    spec = {"containers": [{"name": "c", "image": "nginx"}], "volumes": volumes}
    cluster.load({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    pod = cluster.wait("pod/p", "Ready")
    made = cluster.get("pvc/p-scratch")
    assert made["metadata"]["labels"] == {"a": "b"}
    assert made["metadata"]["ownerReferences"][0]["uid"] == pod["metadata"]["uid"]
    cluster.delete("pod/p")
    cluster.wait("pvc/p-scratch", "delete")
