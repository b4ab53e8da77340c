"""Descriptions in OpenAPI documents: types and fields from lightkube-models, parameters from Kubist."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kubist.api.discovery import descriptions, openapi_types
from kubist.api.discovery.openapi_parameters import CONNECT, DELETE, LIST, PATCH, SHARED, WRITE, place
from kubist.model.schema import catalog

from .test_openapi import ask, gadget

CORE = "io.k8s.api.core.v1."


def test_types_and_fields_have_descriptions() -> None:
    pod = openapi_types.built_in(CORE + "PodSpec")
    assert pod["description"].startswith("PodSpec is a description of a pod")
    assert pod["properties"]["containers"]["description"].startswith("List of containers")


def test_nearly_every_built_in_field_has_a_description() -> None:
    fields = described = 0
    for name in catalog.names():
        for field in openapi_types.built_in(name).get("properties", {}).values():
            fields += 1
            described += "description" in field
    assert described > 0.95 * fields


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("io.k8s.api.networking.v1.NetworkPolicyIngressRule", "from"),
        ("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta", "continue"),
        (
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps",
            "x-kubernetes-list-map-keys",
        ),
    ],
)
def test_fields_with_names_invalid_in_python_have_descriptions(name: str, field: str) -> None:
    assert openapi_types.built_in(name)["properties"][field]["description"]


def test_every_parameter_has_a_description() -> None:
    listed = {*LIST, *WRITE, *PATCH, *DELETE, *SHARED, "name", "namespace", "path", "pretty"}
    for parameter in listed.union(*CONNECT.values()):
        assert len(place(parameter)["description"]) > 10, parameter


def test_swagger_describes_lists_and_watches() -> None:
    document = ask("/openapi/v2").body
    assert isinstance(document, bytes)
    for phrase in (b"list of returned", b"List of services", b"Watch for changes to the described resources"):
        assert phrase in document


@pytest.mark.parametrize("old", [False, True])
def test_custom_resources_describe_their_common_fields(old: bool) -> None:
    kind, listed = openapi_types.custom(gadget(), old=old).values()
    assert kind["properties"]["apiVersion"]["description"].startswith("APIVersion defines")
    assert kind["properties"]["kind"]["description"].startswith("Kind is a string value")
    assert kind["properties"]["metadata"]["description"].startswith("Standard object's metadata")
    assert listed["properties"]["metadata"]["description"].startswith("Standard list metadata")
    assert listed["description"] == "GadgetList is a list of Gadget"


def test_reading_descriptions_does_not_import_lightkube() -> None:
    """lightkube-models cannot be imported without lightkube, which is not a dependency."""
    script = (
        "import sys\n"
        "from kubist.api.discovery import openapi_types\n"
        f"assert openapi_types.built_in({CORE + 'Pod'!r})['description']\n"
        "assert not [name for name in sys.modules if name.split('.')[0] == 'lightkube']\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_types_without_the_package_have_no_descriptions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptions, "_module", lambda name: {})
    assert "description" not in openapi_types.built_in(CORE + "Pod")["properties"]["spec"]
