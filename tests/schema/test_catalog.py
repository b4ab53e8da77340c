"""Catalog: all types are complete and load lazily."""

import subprocess
import sys

import pytest

from kubist.model.schema import catalog, openapi
from kubist.model.schema.node import UNSET


@pytest.mark.parametrize(
    ("group", "version", "kind"),
    [
        ("", "v1", "Pod"),
        ("apps", "v1", "Deployment"),
        ("", "v1", "DeleteOptions"),
        ("apps", "v1", "DeleteOptions"),
        ("", "v1", "Status"),
        ("autoscaling", "v1", "Scale"),
        ("policy", "v1", "Eviction"),
        ("policy", "v1beta1", "Eviction"),
        ("authentication.k8s.io", "v1", "TokenRequest"),
        ("authorization.k8s.io", "v1", "SubjectAccessReview"),
        ("", "v1", "PodList"),
        ("meta.k8s.io", "v1", "PartialObjectMetadataList"),
        ("meta.k8s.io", "v1", "Table"),
        ("", "v1", "WatchEvent"),
        ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "v1", "APIService"),
    ],
)
def test_kind_is_known(group: str, version: str, kind: str) -> None:
    assert catalog.schema_for(group, version, kind).fields


def test_unknown_kind_is_a_key_error() -> None:
    assert not catalog.is_builtin("example.com", "v1", "Box")
    with pytest.raises(KeyError):
        catalog.schema_for("example.com", "v1", "Box")


def test_every_type_can_be_built() -> None:
    for name in catalog.names():
        for field in catalog.by_name(name).fields.values():
            assert field.schema.type


def test_fields_have_patch_strategies_and_merge_keys() -> None:
    containers = catalog.by_name("io.k8s.api.core.v1.PodSpec").fields["containers"].schema
    assert (containers.list_type, containers.map_keys) == ("map", ("name",))
    assert (containers.merge_key, containers.patch_strategies) == ("name", ("merge",))
    protocol = catalog.by_name("io.k8s.api.core.v1.ServicePort").fields["protocol"].schema
    assert (protocol.default, protocol.enum) == ("TCP", ("SCTP", "TCP", "UDP"))
    selector = catalog.by_name("io.k8s.api.core.v1.ServiceSpec").fields["selector"].schema
    assert selector.map_type == "atomic" and selector.default is UNSET


def test_inlined_structs_are_fields_in_json_and_messages_in_protobuf() -> None:
    volume = catalog.by_name("io.k8s.api.core.v1.Volume")
    assert list(volume.fields)[:3] == ["name", "hostPath", "emptyDir"]
    assert volume.fields["emptyDir"].embedded == "VolumeSource"
    assert [(embed.name, embed.number) for embed in volume.embeds] == [("VolumeSource", 2)]


def test_openapi_schemas_round_trip_through_nodes() -> None:
    port = openapi.definition(catalog.by_name("io.k8s.api.core.v1.ServicePort"))
    assert port["required"] == ["port"]
    assert port["properties"]["protocol"] == {
        "type": "string",
        "default": "TCP",
        "enum": ["SCTP", "TCP", "UDP"],
    }
    assert port["properties"]["targetPort"] == {
        "allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.util.intstr.IntOrString"}]
    }
    pod = openapi.definition(catalog.by_name("io.k8s.api.core.v1.Pod"))
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]


def test_import_does_not_load_the_catalog() -> None:
    code = "import kubist.model.schema.strict, kubist.model.schema.catalog as c; print(c._data.cache_info().misses)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "0"
