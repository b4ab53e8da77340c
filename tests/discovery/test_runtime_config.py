"""--runtime-config: API versions that are switched on or off."""

from __future__ import annotations

import re
from collections.abc import Iterator

import orjson
import pytest

from kubist.api.discovery.documents import Aggregated
from kubist.api.resources.runtime_config import served_resources
from tests.live import Live, Pki

BOOL = 'err: strconv.ParseBool: parsing "maybe": invalid syntax'


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            "api/all=false",
            "[--runtime-config=api/all=false conflicts with --enable-priority-and-fairness=true, "
            "invalid runtime-config with only api/all=false]",
        ),
        ("api/ga=false", "--runtime-config=api/ga=false conflicts with --enable-priority-and-fairness=true"),
        ("api/all=maybe", "invalid value api/all=maybe"),
        ("foo=true", "runtime-config invalid key foo"),
        ("foo/v1=true,bar/v2=true", "unknown api groups bar/v2,foo/v1"),
        ("apps/v9=true", "group version apps/v9 that has not been registered"),
        ("apps/v1=maybe", f"invalid value of apps/v1: maybe, {BOOL}"),
        (
            "apps/v1/Deployments=true",
            "invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase plural, "
            'not "Deployments"',
        ),
        ("a/b/c/d=true", "runtime-config invalid key a/b/c/d"),
        ("api/v1/pods/log=false", "runtime-config invalid key /v1/pods/log"),
        ("v1/pods=maybe", f"invalid value of /v1/pods: maybe, {BOOL}"),
        ("autoscaling/v2beta1=true", "group version autoscaling/v2beta1 that has not been registered"),
        (
            "certificates.k8s.io/v1beta1=true",
            "--runtime-config=certificates.k8s.io/v1beta1=true is not supported: this server has no "
            "certificates.k8s.io/v1beta1; docs/flags.md lists the versions that can be switched on",
        ),
    ],
)
def test_wrong_values_are_rejected(wanted: str, message: str) -> None:
    pairs = dict(pair.split("=") for pair in wanted.split(","))
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        served_resources(pairs, fairness=True)


@pytest.mark.parametrize(
    "key", ["apps/v1beta1", "extensions/v1beta1", "apps/v1/nothing", "api/legacy", "v1", "api/v1/pods"]
)
def test_known_keys_without_effect_are_accepted(key: str) -> None:
    assert list(served_resources({key: "true"}).group_versions()) == list(
        served_resources({}).group_versions()
    )


def test_single_resources_win_over_versions_and_versions_over_stages() -> None:
    wanted = {
        "api/beta": "true",
        "networking.k8s.io/v1beta1": "false",
        "networking.k8s.io/v1beta1/ipaddresses": "true",
        "storage.k8s.io/v1beta1/volumeattributesclasses": "false",
    }
    found = served_resources(wanted)
    assert list(found.of("networking.k8s.io", "v1beta1") or ()) == ["ipaddresses"]
    assert found.of("storage.k8s.io", "v1beta1") is None and found.of("resource.k8s.io", "v1beta2")
    assert found.of("admissionregistration.k8s.io", "v1alpha1") is None


@pytest.mark.parametrize("key", ["api/v1/pods", "v1/pods", "/v1/pods"])
def test_single_resource_of_the_core_group_is_switched_off_alone(key: str) -> None:
    served, every = (served_resources(wanted).of("", "v1") or {} for wanted in ({key: "false"}, {}))
    assert served.keys() == every.keys() - {"pods"}


@pytest.mark.parametrize("key", ["api/v1", "v1", "/v1"])
def test_core_group_is_switched_off_as_a_whole(key: str) -> None:
    assert served_resources({key: "false"}).of("", "v1") is None


def test_single_resource_of_the_core_group_stays_without_the_others() -> None:
    assert list(served_resources({"v1": "false", "v1/pods": "true"}).of("", "v1") or ()) == ["pods"]


CONFIG = {
    "api/beta": "true",
    "api/v1/podtemplates": "false",
    "api/v1/pods": "false",
    "admissionregistration.k8s.io/v1alpha1": "true",
    "batch/v1": "false",
    "apps/v1/deployments": "false",
}


@pytest.fixture(scope="module")
def other(server_pki: Pki) -> Iterator[Live]:
    with Live(server_pki, runtime_config=CONFIG) as running:
        yield running


def test_versions_that_are_off_are_not_found(other: Live) -> None:
    for path in ("/apis/batch", "/apis/batch/v1", "/apis/batch/v1/jobs"):
        answer = other.client.ask("GET", path)
        assert (answer.status, answer.body) == (404, b"404 page not found\n"), path
    answer = other.client.ask("GET", "/apis/apps/v1/deployments")
    assert answer.json["message"] == "the server could not find the requested resource"
    groups = {group["name"]: group for group in other.client.get("/apis")["groups"]}
    assert "batch" not in groups and "apps" in groups
    names = [each["name"] for each in other.client.get("/apis/apps/v1")["resources"]]
    assert "daemonsets" in names and "deployments" not in names
    assert "/apis/batch/v1" not in other.client.get("/")["paths"]
    assert "apis/batch/v1" not in other.client.get("/openapi/v3")["paths"]
    assert "/apis/apps/v1/namespaces/{namespace}/deployments" not in other.client.get("/openapi/v2")["paths"]


def test_resources_of_the_core_group_that_are_off_are_not_found(other: Live) -> None:
    client = other.client
    for path in ("pods", "namespaces/default/pods", "namespaces/default/pods/a/log", "podtemplates"):
        answer = client.ask("GET", f"/api/v1/{path}")
        assert answer.status == 404, path
        assert answer.json["message"] == "the server could not find the requested resource"
    names = {each["name"] for each in client.get("/api/v1")["resources"]}
    assert "services" in names and not {name for name in names if name.startswith("pod")}
    aggregated = orjson.loads(Aggregated(other.server.resources, core=True).body("application/json"))
    (core,) = aggregated["items"][0]["versions"]
    assert {each["resource"] for each in core["resources"]} == {name for name in names if "/" not in name}
    for document in ("/openapi/v2", "/openapi/v3/api/v1"):
        paths = client.get(document)["paths"]
        assert "/api/v1/namespaces/{namespace}/services" in paths
        assert not [path for path in paths if "/pods" in path or "/podtemplates" in path]
    client.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "still"}})


def test_beta_versions_are_in_discovery(other: Live) -> None:
    group = other.client.get("/apis/networking.k8s.io")
    assert [each["version"] for each in group["versions"]] == ["v1", "v1beta1"]
    assert group["preferredVersion"]["version"] == "v1"
    listed = other.client.get("/apis/networking.k8s.io/v1beta1")["resources"]
    assert [each["name"] for each in listed] == ["ipaddresses", "servicecidrs", "servicecidrs/status"]
    assert listed[0]["shortNames"] == ["ip"] and listed[0]["storageVersionHash"] == "3f/plJFChNE="
    schema = other.client.get("/openapi/v3/apis/networking.k8s.io/v1beta1")
    assert "io.k8s.api.networking.v1beta1.IPAddress" in schema["components"]["schemas"]
    assert "io.k8s.api.networking.v1.IPAddress" not in schema["components"]["schemas"]


def test_beta_objects_are_those_of_the_stable_version(other: Live) -> None:
    client = other.client
    path = "/apis/networking.k8s.io/v1beta1/servicecidrs"
    answer = client.ask("GET", path)
    assert (
        answer.json["apiVersion"] == "networking.k8s.io/v1beta1" and answer.json["kind"] == "ServiceCIDRList"
    )
    assert answer.headers["Warning"] == (
        '299 - "networking.k8s.io/v1beta1 ServiceCIDR is deprecated in v1.34+, unavailable in v1.37+"'
    )
    made = client.post(
        path,
        {
            "apiVersion": "networking.k8s.io/v1beta1",
            "kind": "ServiceCIDR",
            "metadata": {"name": "more"},
            "spec": {"cidrs": ["10.7.0.0/24"]},
        },
    )
    assert made["apiVersion"] == "networking.k8s.io/v1beta1"
    stable = client.ask("GET", "/apis/networking.k8s.io/v1/servicecidrs/more")
    assert stable.json["apiVersion"] == "networking.k8s.io/v1" and stable.headers["Warning"] is None
    assert stable.json["spec"] == made["spec"] and stable.json["metadata"]["uid"] == made["metadata"]["uid"]
    patched = client.patch(f"{path}/more", {"metadata": {"labels": {"a": "b"}}})
    assert patched["metadata"]["labels"] == {"a": "b"}
    assert patched["apiVersion"] == "networking.k8s.io/v1beta1"
    with client.watch(path + "?fieldSelector=metadata.name=more") as watch:
        assert watch.take(1)[0]["object"]["apiVersion"] == "networking.k8s.io/v1beta1"
    client.delete(f"{path}/more")


def test_wrong_version_in_a_body_is_rejected(other: Live) -> None:
    body = {"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress", "metadata": {"name": "10.0.0.9"}}
    answer = other.client.ask("POST", "/apis/networking.k8s.io/v1beta1/ipaddresses", body)
    assert answer.status == 400
    assert answer.json["message"] == (
        "the API version in the data (networking.k8s.io/v1) does not match the expected API version "
        "(networking.k8s.io/v1beta1)"
    )


def test_every_optional_resource_can_be_listed_and_applied(other: Live) -> None:
    client = other.client
    for group, version, plural in (
        ("admissionregistration.k8s.io", "v1alpha1", "mutatingadmissionpolicies"),
        ("admissionregistration.k8s.io", "v1beta1", "mutatingadmissionpolicybindings"),
        ("storage.k8s.io", "v1beta1", "volumeattributesclasses"),
        ("resource.k8s.io", "v1beta2", "deviceclasses"),
        ("resource.k8s.io", "v1beta2", "resourceslices"),
    ):
        listed = client.get(f"/apis/{group}/{version}/{plural}")
        assert listed["apiVersion"] == f"{group}/{version}" and listed["items"] == []
    path = "/apis/resource.k8s.io/v1beta2/deviceclasses/gpu?fieldManager=me"
    applied = client.ask(
        "PATCH",
        path,
        {
            "apiVersion": "resource.k8s.io/v1beta2",
            "kind": "DeviceClass",
            "metadata": {"name": "gpu"},
            "spec": {"selectors": [{"cel": {"expression": "true"}}]},
        },
        "application/apply-patch+yaml",
    )
    assert applied.status == 201 and applied.json["apiVersion"] == "resource.k8s.io/v1beta2"
    assert applied.json["metadata"]["managedFields"][0]["apiVersion"] == "resource.k8s.io/v1beta2"
    stable = client.get("/apis/resource.k8s.io/v1/deviceclasses/gpu")
    assert stable["spec"] == applied.json["spec"]


def test_server_still_works_inside_without_a_group(server_pki: Pki) -> None:
    with Live(server_pki, runtime_config={"rbac.authorization.k8s.io/v1": "false"}) as live:
        assert live.client.ask("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles").status == 404
        assert live.client.get("/api/v1/namespaces/default")["metadata"]["name"] == "default"
