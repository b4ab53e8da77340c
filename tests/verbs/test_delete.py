"""delete and deletecollection beside the recorded conversations: races, many objects, failures half way."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kubist.testing import Cluster, Host
from kubist.testing.cluster import Refused

pytestmark = pytest.mark.kubist(controllers=())
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"


def make(cluster: Cluster, name: str, **metadata: Any) -> dict[str, Any]:
    made: dict[str, Any] = cluster.request("POST", MAPS, {"metadata": {"name": name, **metadata}})
    return made


def names(cluster: Cluster) -> list[str]:
    return [item["metadata"]["name"] for item in cluster.request("GET", MAPS)["items"]]


def test_the_answer_carries_the_version_of_the_deletion(cluster: Cluster) -> None:
    made = cluster.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "a"}})
    gone = cluster.request("DELETE", "/api/v1/namespaces/default/serviceaccounts/a")
    assert int(gone["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])


def test_of_many_deletes_of_one_object_one_succeeds(kubist_host: Host) -> None:
    cluster = kubist_host.cluster(controllers=())
    try:
        make(cluster, "a")

        def attempt(_: int) -> int:
            try:
                cluster.request("DELETE", f"{MAPS}/a")
            except Refused as refusal:
                return refusal.code
            return 200

        with ThreadPoolExecutor(8) as pool:
            codes = list(pool.map(attempt, range(8)))
        assert sorted(codes) == [200] + [404] * 7
    finally:
        cluster.stop()


def test_removing_finalizers_by_policy_deletes_without_another_write(cluster: Cluster) -> None:
    make(cluster, "a", finalizers=["orphan"])
    seen: list[Any] = []

    async def follow() -> None:
        collection = cluster.inner.api.registry.collection(
            cluster.inner.resources.get("", "v1", "configmaps")  # type: ignore[arg-type]
        )
        collection.subscribe("test", seen.extend)

    cluster.run(follow())
    cluster.delete("cm/a", propagationPolicy="Background")
    assert [change.new for change in seen] == [None]
    assert seen[0].last().object()["metadata"]["finalizers"] == ["orphan"]


def test_grace_that_is_over_when_it_is_shortened_ends_now(cluster: Cluster) -> None:
    cluster.request("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}], "serviceAccountName": "default"}
    cluster.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    cluster.request("POST", PODS, {"metadata": {"name": "p"}, "spec": spec})
    cluster.delete("pod/p", gracePeriodSeconds=3600)
    time.sleep(2.1)
    shortened = cluster.delete("pod/p", gracePeriodSeconds=2)["metadata"]
    assert shortened["deletionGracePeriodSeconds"] == 1
    assert cluster.delete("pod/p", gracePeriodSeconds=30)["metadata"] == shortened
    cluster.delete("pod/p", gracePeriodSeconds=0)
    with pytest.raises(Refused):
        cluster.get("pod/p")


def test_pending_grace_keeps_the_finalizers_as_they_are(cluster: Cluster) -> None:
    cluster.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    cluster.request("POST", PODS, {"metadata": {"name": "p"}, "spec": spec})
    first = cluster.delete("pod/p")
    assert cluster.delete("pod/p", propagationPolicy="Foreground") == first


@pytest.mark.parametrize("precondition", ["uid=other", "resourceVersion=1", "uid=other&resourceVersion="])
def test_preconditions_can_be_in_the_query(cluster: Cluster, precondition: str) -> None:
    made = make(cluster, "a")["metadata"]
    with pytest.raises(Refused) as refused:
        cluster.request("DELETE", f"{MAPS}/a?{precondition}")
    assert refused.value.code == 409
    cluster.request("DELETE", f"{MAPS}/a?uid={made['uid']}&resourceVersion={made['resourceVersion']}")
    assert names(cluster) == []


def test_a_collection_is_deleted_as_it_was_at_the_version_named(cluster: Cluster) -> None:
    version = make(cluster, "a")["metadata"]["resourceVersion"]
    cluster.request("DELETE", f"{MAPS}/a")
    make(cluster, "b")
    assert len(cluster.request("DELETE", f"{MAPS}?resourceVersion={version}", {})["items"]) == 1
    assert names(cluster) == ["b"]


def test_a_collection_of_thousands_goes_at_once(cluster: Cluster) -> None:
    async def fill() -> None:
        import asyncio

        objects = cluster.inner.api.cluster
        await asyncio.gather(
            *(objects.create("configmaps", {"metadata": {"name": f"c{n}"}}, "default") for n in range(3000))
        )

    cluster.run(fill())
    answer = cluster.request("DELETE", MAPS)
    assert len(answer["items"]) == 3000
    assert names(cluster) == []


def test_deletecollection_stops_at_the_first_failure(cluster: Cluster) -> None:
    cluster.load(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "keep"},
            "spec": {
                "matchConstraints": {
                    "resourceRules": [
                        {
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "operations": ["DELETE"],
                            "resources": ["configmaps"],
                        }
                    ]
                },
                "validations": [{"expression": "oldObject.metadata.name != 'c'", "message": "c is kept"}],
            },
        },
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "keep"},
            "spec": {"policyName": "keep", "validationActions": ["Deny"]},
        },
    )
    for name in "abcde":
        make(cluster, name)
    with pytest.raises(Refused, match="c is kept"):
        cluster.request("DELETE", f"{MAPS}/c")
    with pytest.raises(Refused, match="c is kept"):
        cluster.request("DELETE", MAPS)
    assert names(cluster) == ["c", "d", "e"]


def test_a_collection_is_deleted_by_selector_and_limit(cluster: Cluster) -> None:
    for name in "abcd":
        make(cluster, name, labels={"half": "one" if name in "ab" else "other"})
    cluster.request("DELETE", f"{MAPS}?labelSelector=half%3Done&limit=1")
    assert names(cluster) == ["b", "c", "d"]
    cluster.request("DELETE", f"{MAPS}?fieldSelector=metadata.name%3Dd")
    assert names(cluster) == ["b", "c"]
    cluster.request("DELETE", f"{MAPS}?dryRun=All")
    assert names(cluster) == ["b", "c"]


@pytest.mark.parametrize(("seconds", "years"), [(300_000_000_000, (153, 154)), ((1 << 63) - 1, (0, -1))])
@pytest.mark.kubist(disable_admission_plugins=("ServiceAccount",))
def test_huge_grace_period_overflows_as_in_go(cluster: Cluster, seconds: int, years: tuple[int, ...]) -> None:
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    cluster.request("POST", PODS, {"metadata": {"name": "p"}, "spec": spec})
    gone = cluster.request("DELETE", f"{PODS}/p", {"gracePeriodSeconds": seconds})["metadata"]
    assert int(gone["deletionTimestamp"][:4]) - int(gone["creationTimestamp"][:4]) in years
