"""Messages for numbers that no type can hold: word for word those of the reference."""

from __future__ import annotations

import pytest

from tests.live import Client

HERE = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            b'{"metadata":{"generation":1e400}}',
            "json: cannot unmarshal number 1e400 into Go struct field ObjectMeta.metadata.generation of type int64",
        ),
        (
            b'{"data":{"a":1},"metadata":{"generation":1e400}}',
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
    ],
)
def test_number_beyond_every_float(client: Client, body: bytes, message: str) -> None:
    answer = client.ask("POST", HERE, body)
    why = f'ConfigMap in version "v1" cannot be handled as a ConfigMap: {message}'
    assert (answer.status, answer.json["message"]) == (400, why)


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (
            b'{"a":1e400}',
            "application/merge-patch+json",
            "json: cannot unmarshal number 1e400 into Go value of type float64",
        ),
        (
            b'[{"op":"add","path":"/a","value":1e400}]',
            "application/json-patch+json",
            "json: cannot unmarshal number 1e400 into Go struct field jsonPatchOp.value of type float64",
        ),
        (
            b'[{"op":1,"path":"/a","value":1e400}]',
            "application/json-patch+json",
            "json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
        ),
    ],
)
def test_patch_with_a_number_beyond_every_float(
    client: Client, namespace: str, body: bytes, kind: str, message: str
) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    client.post(maps, {"metadata": {"name": "m"}})
    answer = client.ask("PATCH", f"{maps}/m", body, kind)
    assert (answer.status, answer.json["message"]) == (400, f"error decoding patch: {message}")


def test_lost_number_beyond_every_float_does_not_matter(client: Client, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    client.post(maps, {"metadata": {"name": "m"}})
    patch = b'{"metadata":{"generation":1e400,"labels":{"a":"b"},"generation":1}}'
    where = f"{maps}/m?fieldValidation=Ignore"
    answer = client.ask("PATCH", where, patch, "application/merge-patch+json")
    assert (answer.status, answer.json["metadata"].get("labels")) == (200, {"a": "b"})
    patch = b'{"metadata":{"generation":1e400}}'
    answer = client.ask("PATCH", where, patch, "application/merge-patch+json")
    assert answer.status == 422
    assert '"generation\\":1e400,' in answer.json["message"]
    assert (
        "number 1e400 into Go struct field ObjectMeta.metadata.generation of type int64"
        in answer.json["message"]
    )


def test_strategic_merge_of_a_number_beyond_64_bits(client: Client, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    client.post(pods, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    patch = b'{"spec":{"subdomain":12345678901234567890}}'
    answer = client.ask("PATCH", f"{pods}/p", patch, "application/strategic-merge-patch+json")
    why = "map[spec:map[subdomain:1.2345678901234567e+19]]"
    message = f' "" is invalid: patch: Invalid value: "{why}": unrecognized type: string'
    assert (answer.status, answer.json["message"]) == (422, message)
