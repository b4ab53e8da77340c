"""First error of a document, in the order of the text."""

from __future__ import annotations

import pytest

from kubist.base.jsontext.errors import DecodeError
from kubist.model.schema.catalog import schema_for
from kubist.model.schema.strict import decode_body

QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
NAME = "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string"
POLICY = (
    "json: cannot unmarshal number into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy"
)
IMAGE = "json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"spec":{"restartPolicy":1},"metadata":{"name":1}}', POLICY),
        (b'{"metadata":{"name":1},"spec":{"restartPolicy":1}}', NAME),
        (b'{"spec":{"restartPolicy":1,"containers":[{"image":1}]}}', POLICY),
        (b'{"spec":{"containers":[{"image":1}],"restartPolicy":1}}', IMAGE),
        (b'{"metadata":{"name":1},"spec":{"overhead":{"cpu":"x y"}}}', QUANTITY),
        (b'{"spec":{"overhead":{"memory":"1Gi","cpu":""}},"metadata":{"name":1}}', QUANTITY),
        (
            b'{"metadata":{"name":1,"creationTimestamp":true}}',
            "ObjectMeta.metadata.creationTimestamp of type string",
        ),
        (b'{"metadata":{"name":1,"name":"x"}}', NAME),
        (b'{"spec":{"restartPolicy":1},"metadata":{"name":"x","name":1}}', POLICY),
    ],
)
def test_first_error_follows_the_text(body: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as raised:
        decode_body(schema_for("", "v1", "Pod"), body)
    assert str(raised.value).endswith(message)


def test_base64_does_not_stop_decoding() -> None:
    schema = schema_for("", "v1", "Secret")
    with pytest.raises(DecodeError, match="illegal base64 data"):
        decode_body(schema, b'{"data":{"a":"!"},"metadata":{"name":1}}')
    with pytest.raises(DecodeError, match="parsing time"):
        decode_body(schema, b'{"data":{"a":"!"},"metadata":{"creationTimestamp":"x"}}')
