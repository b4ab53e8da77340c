"""Definitions in the form in which kube-apiserver stores them."""

from __future__ import annotations

from typing import Any

import orjson

from kubist.crd.v1beta1 import to_v1
from live import Live

V1 = "apiextensions.k8s.io/v1"
SCHEMA = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}


def stored(**spec: Any) -> dict[str, Any]:
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", **spec}
    return {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "metadata": {"name": "widgets.example.com"},
        "spec": spec,
        "status": {"conditions": [], "acceptedNames": names, "storedVersions": ["v1"]},
    }


def test_what_versions_have_in_common_goes_to_each() -> None:
    both = [{"name": "v1", "served": True, "storage": True}, {"name": "v2", "served": True, "storage": False}]
    columns = [{"name": "Size", "type": "integer", "JSONPath": ".spec.size"}]
    old = stored(
        version="v1",
        versions=both,
        validation=SCHEMA,
        subresources={"status": {}},
        additionalPrinterColumns=columns,
        preserveUnknownFields=False,
    )
    new = to_v1(old, V1)
    assert new["apiVersion"] == V1
    assert not {"version", "validation", "subresources", "preserveUnknownFields"} & set(new["spec"])
    for version in new["spec"]["versions"]:
        assert version["schema"] == SCHEMA
        assert version["subresources"] == {"status": {}}
        assert version["additionalPrinterColumns"] == [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
        ]


def test_a_definition_of_one_version_may_only_name_it() -> None:
    spec = to_v1(stored(version="v1"), V1)["spec"]
    assert spec["versions"] == [{"name": "v1", "served": True, "storage": True}]
    assert spec["preserveUnknownFields"] is True


def test_the_webhook_of_a_conversion_has_a_place_of_its_own() -> None:
    config = {"url": "https://localhost/convert"}
    old = {"strategy": "Webhook", "webhookClientConfig": config, "conversionReviewVersions": ["v1"]}
    assert to_v1(stored(version="v1", conversion=old), V1)["spec"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]},
    }


def test_a_definition_that_another_server_stored_is_served(live: Live) -> None:
    versions = [{"name": "v1", "served": True, "storage": True}]
    value = stored(version="v1", versions=versions, validation=SCHEMA, preserveUnknownFields=False)
    key = "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com"
    live.run(live.server.store.create(key, orjson.dumps(value)))
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
    assert live.client.get(path)["spec"]["versions"] == [{**versions[0], "schema": SCHEMA}]
