"""Strict decoding: unknown and duplicate fields are reported, and the text of numbers is kept."""

import pytest

from kubist.base.jsontext.errors import DecodeError
from kubist.model.schema.catalog import schema_for
from kubist.model.schema.strict import decode_body, decode_value

POD = schema_for("", "v1", "Pod")
CONFIG_MAP = schema_for("", "v1", "ConfigMap")
DEPLOYMENT = schema_for("apps", "v1", "Deployment")


def test_unknown_fields_are_dropped_and_reported_in_order() -> None:
    body = b'{"zzz":1,"spec":{"containers":[{"name":"a","imagee":"x"}],"Volumes":[]},"metadata":{"foo":{}}}'
    decoded = decode_body(POD, body)
    assert decoded.complaints == [
        'unknown field "zzz"',
        'unknown field "spec.containers[0].imagee"',
        'unknown field "spec.Volumes"',
        'unknown field "metadata.foo"',
    ]
    assert "zzz" not in decoded.object
    assert decode_value(POD, {"zzz": 1}).complaints == ['unknown field "zzz"']


def test_duplicate_fields_are_reported_and_the_last_wins() -> None:
    body = b'{"metadata":{"name":"a","name" : "b"},"data":{"k":"1","k":"2"}}'
    decoded = decode_body(CONFIG_MAP, body)
    assert decoded.complaints == ['duplicate field "metadata.name"', 'duplicate field "data.k"']
    assert decoded.object == {"metadata": {"name": "b"}, "data": {"k": "2"}}


def test_duplicate_structs_and_maps_merge() -> None:
    body = b'{"metadata":{"name":"a"},"data":{"a":"1"},"data":{"b":"2"},"metadata":{"uid":"u","name":null}}'
    decoded = decode_body(CONFIG_MAP, body)
    assert decoded.object == {"metadata": {"name": "a", "uid": "u"}, "data": {"a": "1", "b": "2"}}
    assert decoded.complaints == ['duplicate field "data"', 'duplicate field "metadata"']


def test_duplicates_hidden_by_escapes_are_found() -> None:
    decoded = decode_body(CONFIG_MAP, rb'{"data":{"a\u003a":"x","k":"1","k":"2"}}')
    assert decoded.complaints == ['duplicate field "data.k"']


def test_colons_in_strings_are_not_duplicates() -> None:
    assert decode_body(CONFIG_MAP, b'{ "data" : { "a" : "x:y \\": z" , "b:" : ": :" } }').complaints == []


def test_complaints_are_limited_to_one_hundred() -> None:
    body = b"{" + b",".join(b'"f%d":1' % index for index in range(300)) + b"}"
    assert len(decode_body(CONFIG_MAP, body).complaints) == 100


def test_quantities_keep_the_text_of_numbers() -> None:
    body = b'{"status":{"capacity":{"a":1e3,"b":0.5,"c":1.50}}}'
    capacity = decode_body(schema_for("", "v1", "Node"), body).object["status"]["capacity"]
    assert capacity == {"a": "1e3", "b": "500m", "c": "1500m"}


@pytest.mark.parametrize("text", ["80.0", "3e1", "99999999999999999999", "1.0"])
def test_non_integer_number_is_rejected_with_its_text(text: str) -> None:
    with pytest.raises(DecodeError) as error:
        decode_body(DEPLOYMENT, f'{{"spec":{{"replicas":{text}}}}}'.encode())
    assert f"cannot unmarshal number {text} into Go struct field DeploymentSpec.spec.replicas" in str(
        error.value
    )


def test_raw_numbers_survive_exact_decoding() -> None:
    body = b'{"data":{"x":1.5,"y":[2.0]},"revision":1,"revision":2}'
    decoded = decode_body(schema_for("apps", "v1", "ControllerRevision"), body)
    assert decoded.object["data"] == {"x": 1.5, "y": [2.0]}
    assert type(decoded.object["data"]["x"]) is float
