"""Protobuf encoding of OpenAPI v3, read with gnostic's messages."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from kubist.api.discovery import gnostic
from kubist.api.discovery.openapi import V3_FORMS, V3_PROTOBUF, OpenAPI
from kubist.api.resources.resource import Resources

from .test_openapi import ask, body, header

SCALARS = {"bool": "TYPE_BOOL", "int": "TYPE_INT64", "double": "TYPE_DOUBLE", "text": "TYPE_STRING"}


def reader() -> Any:
    """Message class of a Document, built only from the field numbers of the format."""
    file = descriptor_pb2.FileDescriptorProto(name="openapi.proto", package="openapi", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto

    def add(message: str, fields: list[tuple[str, int, str, bool]]) -> None:
        made = file.message_type.add(name=message)
        for name, number, kind, many in fields:
            field = made.field.add(name=name, number=number)
            field.label = kinds.LABEL_REPEATED if many else kinds.LABEL_OPTIONAL
            if kind in SCALARS:
                field.type = kinds.Type.Value(SCALARS[kind])
            else:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".openapi.{kind}"

    add("Any", [("yaml", 2, "text", False)])
    add("NamedAny", [("name", 1, "text", False), ("value", 2, "Any", False)])
    add("Reference", [("ref", 1, "text", False)])
    add("Schema", [
        ("required", 23, "text", True), ("type", 25, "text", False), ("all_of", 26, "SchemaOrReference", True),
        ("items", 30, "ItemsItem", False), ("properties", 31, "Schemas", False), ("default", 33, "Default", False),
        ("format", 35, "text", False), ("extension", 36, "NamedAny", True),
    ])  # fmt: skip
    add("SchemaOrReference", [("schema", 1, "Schema", False), ("reference", 2, "Reference", False)])
    add("ItemsItem", [("of", 1, "SchemaOrReference", True)])
    add(
        "Default",
        [("number", 1, "double", False), ("boolean", 2, "bool", False), ("string", 3, "text", False)],
    )
    add("NamedSchema", [("name", 1, "text", False), ("value", 2, "SchemaOrReference", False)])
    add("Schemas", [("named", 1, "NamedSchema", True)])
    add("Components", [("schemas", 1, "Schemas", False)])
    add(
        "Operation",
        [("tags", 1, "text", True), ("operation_id", 5, "text", False), ("extension", 13, "NamedAny", True)],
    )
    add("PathItem", [("get", 4, "Operation", False), ("post", 6, "Operation", False)])
    add("NamedPathItem", [("name", 1, "text", False), ("value", 2, "PathItem", False)])
    add("Paths", [("path", 1, "NamedPathItem", True)])
    add(
        "Document",
        [("openapi", 1, "text", False), ("paths", 4, "Paths", False), ("components", 5, "Components", False)],
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("openapi.Document"))


@pytest.mark.parametrize("accept", [form for form in V3_FORMS if "protobuf" in form])
def test_protobuf_document_equals_json_document(accept: str) -> None:
    openapi = OpenAPI(Resources())
    plain = body(ask("/openapi/v3/apis/apps/v1", openapi))
    found = ask("/openapi/v3/apis/apps/v1", openapi, accept=accept)
    assert header(found, b"Content-Type") == V3_PROTOBUF
    document = reader().FromString(found.body)
    schemas = {named.name: named.value.schema for named in document.components.schemas.named}
    assert document.openapi == plain["openapi"]
    assert [path.name for path in document.paths.path] == list(plain["paths"])
    assert list(schemas) == list(plain["components"]["schemas"])
    kind = schemas["io.k8s.api.apps.v1.Deployment"]
    (extension,) = [item for item in kind.extension if item.name == "x-kubernetes-group-version-kind"]
    assert extension.value.yaml == "- group: apps\n  kind: Deployment\n  version: v1\n"
    properties = {named.name: named.value.schema for named in kind.properties.named}
    assert properties["spec"].all_of[0].reference.ref.endswith("io.k8s.api.apps.v1.DeploymentSpec")
    assert properties["spec"].HasField("default")
    assert properties["kind"].type == "string"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (True, b"\x10\x01"),
        (False, b"\x10\x00"),
        (1, b"\x09\0\0\0\0\0\0\xf0\x3f"),
        (0, b"\x09" + bytes(8)),
        ("", b"\x1a\x00"),
        ("TCP", b"\x1a\x03TCP"),
        ({}, b""),
        ([1], b""),
    ],
)
def test_non_scalar_default_is_encoded_as_empty_message(value: Any, written: bytes) -> None:
    assert gnostic._default(value) == written


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("map", "map\n"),
        ("yes", '"yes"\n'),
        ("", '""\n'),
        (True, "true\n"),
        (["a", "b"], "- a\n- b\n"),
        (
            [{"rule": "self.a: 'x'", "more": {"b": [1]}}],
            "- rule: 'self.a: ''x'''\n  more:\n    b:\n      - 1\n",
        ),
        ({"a": {}, "b": []}, "a: {}\nb: []\n"),
    ],
)
def test_extensions_are_yaml_in_given_order(value: Any, text: str) -> None:
    assert gnostic.any_value(value)[2:].decode() == text


def test_zero_values_are_omitted() -> None:
    assert gnostic.encode_v3(
        {"openapi": "3.0.0", "components": {"schemas": {"A": {"uniqueItems": False}}}}
    ) == (b"\x0a\x053.0.0\x2a\x0b\x0a\x09\x0a\x07\x0a\x01A\x12\x02\x0a\x00")
