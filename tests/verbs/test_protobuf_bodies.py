"""Protobuf bodies that no usual encoder makes, on a real server."""

from typing import Any

import pytest

from kubist.model.codec import protobuf
from kubist.model.codec import protobuf_wire as wire
from tests.live import Answer, Client

PROTOBUF = "application/vnd.kubernetes.protobuf"


def field(number: int, content: bytes | str | int) -> bytes:
    if isinstance(content, int):
        return wire.tag(number, wire.VARINT) + wire.varint(content)
    return wire.delimited(
        wire.tag(number, wire.BYTES), content.encode() if isinstance(content, str) else content
    )


def service(client: Client, namespace: str, target_port: bytes) -> Answer:
    port = field(1, "p") + field(3, 80) + field(4, target_port)
    body = protobuf.wrap("v1", "Service", field(1, field(1, "s")) + field(2, field(1, port)))
    return client.ask("POST", f"/api/v1/namespaces/{namespace}/services", body, PROTOBUF)


@pytest.mark.parametrize(
    ("target_port", "value"),
    [
        (field(1, 1) + field(2, 8080), '""'),
        (field(3, "http"), "0"),
    ],
    ids=["text with an integer only", "integer with a text only"],
)
def test_target_port_with_only_the_unused_part_is_invalid(
    client: Client, namespace: str, target_port: bytes, value: str
) -> None:
    answer = service(client, namespace, target_port)
    assert answer.status == 422, answer
    cause = answer.json["details"]["causes"][0]
    assert cause["field"] == "spec.ports[0].targetPort"
    assert cause["message"].startswith(f"Invalid value: {value}: ")


def test_empty_target_port_is_the_port(client: Client, namespace: str) -> None:
    answer = service(client, namespace, field(1, 1))
    assert answer.json["spec"]["ports"][0]["targetPort"] == 80


@pytest.mark.parametrize("fields", [b"{broken", b"", b"[]"])
def test_malformed_managed_fields_leave_the_stored_ones(
    client: Client, namespace: str, fields: bytes
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    client.post(f"{path}?fieldManager=first", {"metadata": {"name": "c"}, "data": {"a": "1"}})
    entry = (
        field(1, "m")
        + field(2, "Update")
        + field(3, "v1")
        + field(6, "FieldsV1")
        + field(7, field(1, fields))
    )
    raw = field(1, field(1, "c") + field(17, entry)) + field(2, field(1, "b") + field(2, "1"))
    answer = client.ask(
        "PUT", f"{path}/c?fieldManager=second", protobuf.wrap("v1", "ConfigMap", raw), PROTOBUF
    )
    assert answer.status == 200, answer
    managed: list[dict[str, Any]] = answer.json["metadata"]["managedFields"]
    assert [entry["manager"] for entry in managed] == ["first", "second"]
