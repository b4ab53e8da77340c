"""Decoding: the result is the object that the reference returns."""

from typing import Any

import pytest

from kubist.base.jsontext.errors import DecodeError
from kubist.model.schema.catalog import schema_for
from kubist.model.schema.decode import decode

KINDS = {
    "Pod": ("", "v1"),
    "Secret": ("", "v1"),
    "Service": ("", "v1"),
    "LimitRange": ("", "v1"),
    "ResourceQuota": ("", "v1"),
    "Node": ("", "v1"),
    "Event": ("", "v1"),
    "Deployment": ("apps", "v1"),
    "ControllerRevision": ("apps", "v1"),
    "Role": ("rbac.authorization.k8s.io", "v1"),
    "Lease": ("coordination.k8s.io", "v1"),
    "TokenRequest": ("authentication.k8s.io", "v1"),
    "CustomResourceDefinition": ("apiextensions.k8s.io", "v1"),
}


def given(kind: str, value: Any) -> Any:
    return decode(schema_for(*KINDS[kind], kind), value)


def pod(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


CONTAINER = {"name": "", "resources": {}}


def _versions(**schema: Any) -> list[dict[str, Any]]:
    """The versions of a CRD that has one, with this schema."""
    schema = {"openAPIV3Schema": {"type": "object", **schema}}
    return [{"name": "v1", "served": True, "storage": True, "schema": schema}]


CANONICAL: list[tuple[str, str, Any, Any]] = [
    (
        "fields take their declared order, maps their sorted order",
        "Pod",
        {"status": {}, "metadata": {"labels": {"b": "1", "a": "2"}, "name": "x"}, "kind": "Pod"},
        {
            "kind": "Pod",
            "metadata": {"name": "x", "labels": {"a": "2", "b": "1"}},
            "spec": {"containers": None},
            "status": {},
        },
    ),
    (
        "null in a string map is empty, a null item is a zero value",
        "Pod",
        {"metadata": {"annotations": {"a": None}}, "spec": {"containers": [None]}},
        {"metadata": {"annotations": {"a": ""}}, "spec": {"containers": [CONTAINER]}, "status": {}},
    ),
    (
        "an empty struct behind a pointer survives, empty lists and maps vanish",
        "Pod",
        pod(
            containers=[], affinity={}, dnsConfig={}, tolerations=[], nodeSelector={}, priority=0, hostname=""
        ),
        {
            "metadata": {},
            "spec": {"containers": None, "affinity": {}, "priority": 0, "dnsConfig": {}},
            "status": {},
        },
    ),
    (
        "null is absent",
        "Pod",
        {
            "metadata": None,
            "spec": {"containers": None, "affinity": None, "hostNetwork": None, "nodeName": None},
        },
        {"metadata": {}, "spec": {"containers": None}, "status": {}},
    ),
    (
        "required lists that are empty are null",
        "LimitRange",
        {"spec": {"limits": []}},
        {"metadata": {}, "spec": {"limits": None}},
    ),
    ("a role without rules says so", "Role", {}, {"metadata": {}, "rules": None}),
    (
        "quantities are canonical, numbers allowed, null zero",
        "ResourceQuota",
        {"spec": {"hard": {"cpu": 1, "memory": "1024Mi", "b": None}}},
        {"metadata": {}, "spec": {"hard": {"b": "0", "cpu": "1", "memory": "1Gi"}}, "status": {}},
    ),
    (
        "an unset target port and load balancer print",
        "Service",
        {"spec": {"ports": [{"port": 80}]}},
        {
            "metadata": {},
            "spec": {"ports": [{"port": 80, "targetPort": 0}]},
            "status": {"loadBalancer": {}},
        },
    ),
    (
        "base64 takes line breaks, and arrays of octets",
        "Secret",
        {"data": {"a": "YW\nJj", "b": [97, 98], "c": None}},
        {"metadata": {}, "data": {"a": "YWJj", "b": "YWI=", "c": ""}},
    ),
    (
        "a pointer that is always written is null",
        "TokenRequest",
        {"spec": {"audiences": ["a"]}},
        {
            "metadata": {},
            "spec": {"audiences": ["a"], "expirationSeconds": None, "boundObjectRef": None},
            "status": {"token": "", "expirationTimestamp": None},
        },
    ),
    (
        "raw values are kept as sent",
        "ControllerRevision",
        {"data": {"b": 1, "a": [None, {"z": {}}]}, "revision": 3},
        {"metadata": {}, "data": {"b": 1, "a": [None, {"z": {}}]}, "revision": 3},
    ),
    ("an absent raw value is null", "ControllerRevision", {}, {"metadata": {}, "data": None, "revision": 0}),
    (
        "micro-times keep their digits",
        "Lease",
        {"spec": {"renewTime": "2024-01-02T03:04:05.000100+01:00"}},
        {"metadata": {}, "spec": {"renewTime": "2024-01-02T02:04:05.000100Z"}},
    ),
    (
        "parts of a definition's schema may be of several types",
        "CustomResourceDefinition",
        {
            "spec": {
                "versions": _versions(
                    maximum=3.0,
                    default={"b": 1, "a": 2},
                    properties={
                        "a": {"items": {"type": "string", "unknown": 1}},
                        "b": {"additionalProperties": True},
                    },
                )
            }
        },
        {
            "metadata": {},
            "spec": {
                "group": "",
                "names": {"plural": "", "kind": ""},
                "scope": "",
                "versions": _versions(
                    default={"b": 1, "a": 2},
                    maximum=3,
                    properties={"a": {"items": {"type": "string"}}, "b": {"additionalProperties": True}},
                ),
            },
            "status": {
                "conditions": None,
                "acceptedNames": {"plural": "", "kind": ""},
                "storedVersions": None,
            },
        },
    ),
]


@pytest.mark.parametrize(
    ("kind", "value", "expected"), [c[1:] for c in CANONICAL], ids=[c[0] for c in CANONICAL]
)
def test_decoded_object_is_canonical(kind: str, value: Any, expected: Any) -> None:
    got = given(kind, value)
    assert got == expected
    assert list(got) == list(expected)
    assert given(kind, got) == expected, "decoding again changes nothing"


REFUSED: list[tuple[str, Any, str]] = [
    ("Pod", [], "json: cannot unmarshal array into Go value of type v1.Pod"),
    (
        "Pod",
        pod(containers={}),
        "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
    ),
    (
        "Pod",
        pod(containers=[{"name": 3}]),
        "json: cannot unmarshal number into Go struct field Container.spec.containers.name of type string",
    ),
    (
        "Pod",
        pod(volumes=[{"emptyDir": 3}]),
        "json: cannot unmarshal number into Go struct field "
        "Volume.spec.volumes.VolumeSource.emptyDir of type v1.EmptyDirVolumeSource",
    ),
    (
        "Pod",
        {"metadata": {"labels": {"a": True}}},
        "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string",
    ),
    (
        "Deployment",
        {"spec": {"replicas": 9999999999}},
        "json: cannot unmarshal number 9999999999 into Go struct field "
        "DeploymentSpec.spec.replicas of type int32",
    ),
    (
        "Deployment",
        {"spec": {"replicas": 3.5}},
        "json: cannot unmarshal number 3.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
    ),
    (
        "Deployment",
        {"spec": {"strategy": {"rollingUpdate": {"maxSurge": True}}}},
        "json: cannot unmarshal bool into Go struct field "
        "RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
    ),
    (
        "Service",
        {"spec": {"ports": [{"protocol": 6}]}},
        "json: cannot unmarshal number into Go struct field "
        "ServicePort.spec.ports.protocol of type v1.Protocol",
    ),
    ("Secret", {"data": {"a": "not base64"}}, "illegal base64 data at input byte 3"),
    ("Secret", {"data": {"a": "YWI"}}, "illegal base64 data at input byte 0"),
    ("Secret", {"data": {"a": "_-Ab"}}, "illegal base64 data at input byte 0"),
    (
        "Node",
        {"status": {"capacity": {"cpu": "lots"}}},
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ),
    (
        "Event",
        {"eventTime": "soon"},
        'parsing time "soon" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "soon" as "2006"',
    ),
]


@pytest.mark.parametrize(("kind", "value", "complaint"), REFUSED)
def test_wrong_type_is_rejected_with_its_path(kind: str, value: Any, complaint: str) -> None:
    with pytest.raises(DecodeError) as error:
        given(kind, value)
    assert str(error.value) == complaint


def test_deep_schemas_are_rejected() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"not": deep}
    with pytest.raises(DecodeError, match="max depth"):
        given("CustomResourceDefinition", {"spec": {"versions": [{"schema": {"openAPIV3Schema": deep}}]}})
