"""CRDs in v1beta1, the version that kube-apiserver stores."""

from __future__ import annotations

from typing import Any

import orjson

from kubist.api.crd.v1beta1 import to_v1
from tests.live import Live

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


def test_shared_fields_are_copied_to_each_version() -> None:
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


def test_spec_version_alone_becomes_one_version() -> None:
    spec = to_v1(stored(version="v1"), V1)["spec"]
    assert spec["versions"] == [{"name": "v1", "served": True, "storage": True}]
    assert spec["preserveUnknownFields"] is True


def test_webhook_client_config_moves_below_webhook() -> None:
    config = {"url": "https://localhost/convert"}
    old = {"strategy": "Webhook", "webhookClientConfig": config, "conversionReviewVersions": ["v1"]}
    assert to_v1(stored(version="v1", conversion=old), V1)["spec"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]},
    }


def test_crd_stored_as_v1beta1_is_served(live: Live) -> None:
    versions = [{"name": "v1", "served": True, "storage": True}]
    value = stored(version="v1", versions=versions, validation=SCHEMA, preserveUnknownFields=False)
    key = "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com"
    live.run(live.server.store.create(key, orjson.dumps(value)))
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
    assert live.client.get(path)["spec"]["versions"] == [{**versions[0], "schema": SCHEMA}]
