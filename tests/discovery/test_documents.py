"""Discovery documents: groups, versions and resources."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from kubist.api.discovery import documents
from kubist.api.discovery.documents import Aggregated, asked_for
from kubist.api.resources.resource import Resource, Resources
from kubist.model.codec import protobuf
from kubist.model.codec import protobuf_wire as wire

ASK = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

CUSTOM: Any = object()
"""Stands for the version of a CRD, of which these documents need nothing."""


def custom(group: str, version: str, kind: str = "Widget") -> Resource:
    return Resource(
        group=group,
        version=version,
        resource=kind.lower() + "s",
        kind=kind,
        singular=kind.lower(),
        namespaced=True,
        verbs=("get", "list", "create"),
        list_kind=kind + "List",
        custom=CUSTOM,
        storage_version=f"{group}/v1",
        prefix=f"/registry/{group}/{kind.lower()}s/",
    )


@pytest.mark.parametrize(
    ("group", "version", "resource", "hashed"),
    [
        ("apps", "v1", "daemonsets", "dd7pWHUlMKQ="),
        ("events.k8s.io", "v1", "events", "r2yiGXH7wu8="),
        ("autoscaling", "v1", "horizontalpodautoscalers", "qwQve8ut294="),
        ("apiextensions.k8s.io", "v1", "customresourcedefinitions", "jfWCUB31mvA="),
        ("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies", "LYmCf+UMVdg="),
    ],
)
def test_storage_version_hash_uses_the_stored_version(
    group: str, version: str, resource: str, hashed: str
) -> None:
    served = Resources().of(group, version)
    assert served is not None
    listed = documents.api_resource_list(group, version, served)["resources"]
    assert next(r for r in listed if r["name"] == resource)["storageVersionHash"] == hashed


def test_custom_groups_are_last_sorted_by_api_service_name() -> None:
    resources = Resources()
    for resource in (custom("zeta.example.com", "v1"), custom("alpha.example.com", "v1beta1")):
        resources.add(resource)
    assert documents.group_names(resources)[-2:] == ["zeta.example.com", "alpha.example.com"]
    assert documents.group_names(resources)[0] == "apiregistration.k8s.io"


def test_preferred_version_of_custom_group_is_first() -> None:
    resources = Resources()
    for version in ("v1alpha1", "v2", "v1"):
        resources.add(custom("x.example.com", version))
    group = documents.api_group("x.example.com", resources)
    assert [version["version"] for version in group["versions"]] == ["v2", "v1", "v1alpha1"]
    assert group["preferredVersion"]["version"] == "v2"


@pytest.mark.parametrize(
    ("accept", "serializer"),
    [
        ("application/json" + ASK, "application/json"),
        ("application/json,application/json" + ASK, "application/json"),
        ("application/yaml" + ASK + ";q=0.1,application/json", "application/yaml"),
        ("*/*" + ASK, "application/json"),
        ("application/json", None),
        ("application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", None),
        ("", None),
    ],
)
def test_aggregated_discovery_wins_if_any_clause_requests_it(accept: str, serializer: str | None) -> None:
    assert asked_for(accept) == serializer


def test_aggregated_etag_changes_with_the_resources() -> None:
    resources = Resources()
    aggregated = Aggregated(resources, core=False)
    before = orjson.loads(aggregated.body("application/json"))
    tag = aggregated.etag
    resources.add(custom("x.example.com", "v1"))
    after = orjson.loads(aggregated.body("application/json"))
    assert aggregated.etag != tag
    assert len(after["items"]) == len(before["items"]) + 1
    found = after["items"][-1]["versions"][0]["resources"][0]
    assert found["responseKind"] == {"group": "x.example.com", "version": "v1", "kind": "Widget"}


def test_aggregated_protobuf_document_has_every_group() -> None:
    aggregated = Aggregated(Resources(), core=False)
    listed = orjson.loads(aggregated.body("application/json"))
    envelope = protobuf.unwrap(aggregated.body("application/vnd.kubernetes.protobuf"))
    assert envelope[:2] == ("apidiscovery.k8s.io/v2", "APIGroupDiscoveryList")
    groups = [value for number, value in wire.fields(envelope.raw, "list") if number == 2]
    assert len(groups) == len(listed["items"])
