"""Protobuf: recorded samples match byte for byte in both directions; envelopes, lists and frames."""

import json
from pathlib import Path
from typing import Any

import pytest

from kubist.base.jsontext.errors import DecodeError
from kubist.model.codec import protobuf, protobuf_decode, protobuf_mistakes
from kubist.model.codec import protobuf_wire as wire
from kubist.model.patch.apply import fieldsv1
from kubist.model.schema.catalog import by_name, schema_for
from kubist.model.schema.decode import decode

SAMPLES = sorted((Path(__file__).parent / "data").glob("*.json"))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_recorded_sample_round_trips(sample: Path) -> None:
    message = sample.with_suffix(".pb").read_bytes()
    value = json.loads(sample.read_text())
    group, _, version = value["apiVersion"].rpartition("/")
    schema = schema_for(group, version, value["kind"])
    assert protobuf.wrap(value["apiVersion"], value["kind"], protobuf.encode(schema, value)) == message
    envelope = protobuf.unwrap(message)
    assert {"kind": envelope.kind, "apiVersion": envelope.api_version} | protobuf.decode(
        schema, envelope.raw
    ) == value
    assert decode(schema, json.loads(sample.read_text())) == value, "the sample is canonical"


CONFIG_MAP = schema_for("", "v1", "ConfigMap")
POD = schema_for("", "v1", "Pod")
PROPS = by_name("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")


def roundtrip(kind: tuple[str, str, str], value: dict[str, Any]) -> Any:
    schema = schema_for(*kind)
    canonical = decode(schema, value)
    decoded = protobuf.decode(schema, protobuf.encode(schema, canonical))
    assert decoded == canonical
    return decoded


def test_zero_values_are_written_and_pointers_only_when_set() -> None:
    port = schema_for("", "v1", "Service").fields["spec"].schema.fields["ports"].schema.items
    assert port is not None
    assert protobuf.encode(
        port, {"port": 80, "targetPort": 0}
    ).hex() == "0a0012001850220608001000 1a002800".replace(" ", "")


def test_crd_round_trips_through_protobuf() -> None:
    props = {
        "type": "object",
        "minimum": -1.5,
        "enum": [1, "a", None],
        "items": [{"type": "string"}],
        "additionalProperties": {"type": "integer"},
        "additionalItems": False,
        "dependencies": {"a": ["b"]},
        "default": {"x": [1]},
        "x-kubernetes-preserve-unknown-fields": False,
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": props}}
    roundtrip(
        ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        {
            "spec": {
                "group": "g",
                "names": {"plural": "p", "kind": "K"},
                "scope": "Cluster",
                "versions": [version],
            }
        },
    )


def test_named_lists_are_messages() -> None:
    review = {"spec": {"user": "u", "extra": {"scopes": ["a", "b"], "none": []}}}
    roundtrip(("authorization.k8s.io", "v1", "SubjectAccessReview"), review)


def test_negative_varint_has_ten_bytes() -> None:
    assert wire.varint(-1) == b"\xff" * 9 + b"\x01"
    roundtrip(("apps", "v1", "Deployment"), {"spec": {"replicas": -5}})


def test_lists_join_their_encoded_items() -> None:
    items = [{"metadata": {"name": "a"}, "data": {"k": "v"}}, {"metadata": {"name": "b"}}]
    joined = protobuf.join_list(
        {"resourceVersion": "7"}, [protobuf.encode(CONFIG_MAP, item) for item in items]
    )
    listed = {"metadata": {"resourceVersion": "7"}, "items": items}
    schema = schema_for("", "v1", "ConfigMapList")
    assert joined == protobuf.encode(schema, listed)
    assert protobuf.decode(schema, joined) == listed


def test_watch_frame_is_a_length_and_an_event() -> None:
    object = protobuf.wrap("v1", "ConfigMap", b"")
    frame = protobuf.watch_frame("ADDED", object)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    fields = dict(wire.fields(frame[4:], "WatchEvent"))
    assert fields == {1: b"ADDED", 2: wire.delimited(b"\x0a", object)}


def test_envelope_may_lack_kind_and_version() -> None:
    assert protobuf.unwrap(b"k8s\0\x12\x01x") == ("", "", b"x")
    with pytest.raises(DecodeError, match=r"expected prefix \[107 56 115 0\]"):
        protobuf.unwrap(b"K8S\0")


def test_unknown_fields_are_skipped_and_the_last_scalar_wins() -> None:
    meta = b"\x0a\x05\x0a\x03one" + b"\x0a\x05\x0a\x03two"
    unknown = b"\xf8\x3e\x05" + b"\xfa\x3e\x01x" + b"\xf9\x3e" + bytes(8) + b"\xfd\x3e" + bytes(4)
    group = b"\xfb\x3e\x08\x01\x12\x01x\xfc\x3e"
    assert protobuf.decode(CONFIG_MAP, unknown + meta + group) == {"metadata": {"name": "two"}}


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (b"\x08\x01", "proto: wrong wireType = 0 for field ObjectMeta"),
        (b"\x0a\x05x", "unexpected EOF"),
        (b"\x0a", "unexpected EOF"),
        (b"\xff" * 12, "proto: integer overflow"),
        (b"\x00", "proto: ConfigMap: illegal tag 0 (wire type 0)"),
        (b"\x0c", "proto: ConfigMap: wiretype end group for non-group"),
        (b"\x0f", "proto: wrong wireType = 7 for field ObjectMeta"),
        (b"\xff\x3e", "proto: illegal wireType 7"),
        (b"\x0b\x0c", "proto: wrong wireType = 3 for field ObjectMeta"),
        (b"\x0d\0\0\0\0", "proto: wrong wireType = 5 for field ObjectMeta"),
        (b"\x09" + bytes(8), "proto: wrong wireType = 1 for field ObjectMeta"),
        (b"\x0a\x0a\x09" + bytes(9), "proto: wrong wireType = 1 for field Name"),
        (b"\x0a" + b"\xff" * 9 + b"\x01", "proto: negative length found during unmarshaling"),
        (b"\x12\x02\x08\x05", "unexpected EOF"),
        (b"\x08\x01\x12\x09", "proto: wrong wireType = 0 for field ObjectMeta"),
        (b"\x0a\x02\x2d\x00", "proto: wrong wireType = 5 for field UID"),
        (b"\xfb\x3e" * 100, "unexpected EOF"),
    ],
)
def test_malformed_messages_are_rejected(message: bytes, complaint: str) -> None:
    with pytest.raises(DecodeError) as error:
        protobuf.decode(CONFIG_MAP, message)
    assert str(error.value) == complaint


def test_packed_numbers_are_decoded() -> None:
    spec = wire.delimited(b"\x72", wire.delimited(b"\x22", b"\x01\x02"))
    decoded = protobuf.decode(POD, wire.delimited(b"\x12", spec))
    assert decoded["spec"]["securityContext"]["supplementalGroups"] == [1, 2]


def test_endless_nesting_is_rejected() -> None:
    props = by_name("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
    message = b""
    for _ in range(3000):
        message = wire.delimited(wire.tag(props.fields["not"].number, wire.BYTES), message)
    with pytest.raises(DecodeError, match="max depth"):
        protobuf.decode(props, message)


def field(number: int, content: bytes | str | int) -> bytes:
    if isinstance(content, int):
        return wire.tag(number, wire.VARINT) + wire.varint(content)
    return wire.delimited(
        wire.tag(number, wire.BYTES), content.encode() if isinstance(content, str) else content
    )


def test_repeated_messages_are_merged() -> None:
    message = field(1, field(1, "a") + field(11, field(1, "x") + field(2, "1")))
    message += field(1, field(11, field(1, "x") + field(2, "2"))) + field(1, field(11, field(1, "y")))
    assert protobuf.decode(CONFIG_MAP, message) == {"metadata": {"name": "a", "labels": {"x": "2", "y": ""}}}


def test_repeated_inlined_messages_are_merged() -> None:
    probe = field(10, field(1, field(1, field(1, "ls")))) + field(10, field(1, field(1, field(1, "-l"))))
    container = protobuf.decode(POD, field(2, field(2, probe)))["spec"]["containers"][0]
    assert container["livenessProbe"]["exec"] == {"command": ["ls", "-l"]}


def test_repeated_int_or_string_messages_are_merged() -> None:
    ports = field(2, field(1, field(4, field(1, 1)) + field(4, field(3, "http"))))
    decoded = protobuf.decode(schema_for("", "v1", "Service"), ports)
    assert decoded["spec"]["ports"][0]["targetPort"] == "http"


def test_repeated_messages_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if messages within them are repeated: reading them at every level twice would never end."""
    reads = 0

    def counted(data: bytes, message: str) -> Any:
        nonlocal reads
        reads += 1
        assert reads < 200, "messages are read again and again"
        return wire.fields(data, message)

    monkeypatch.setattr(protobuf_decode, "fields", counted)
    props = field(5, "object")
    for _ in range(40):
        props = field(28, props) + field(28, "")
    decoded = protobuf.decode(PROPS, props)
    for _ in range(40):
        decoded = decoded["not"]
    assert decoded == {"type": "object"}
    assert protobuf.decode(CONFIG_MAP, field(1, "") * 1000 + field(1, field(1, "x"))) == {
        "metadata": {"name": "x"}
    }


def test_map_values_that_contain_the_next_entries_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first mistake of a malformed message is looked for in linear time."""
    tags = 0

    def counted(data: bytes, at: int) -> Any:
        nonlocal tags
        tags += 1
        assert tags < 1000, "entries are read again and again"
        return tag(data, at)

    tag = protobuf_mistakes._tag
    monkeypatch.setattr(protobuf_mistakes, "_tag", counted)
    message = b""
    for _ in range(100):
        message = field(29, b"\x12" + wire.varint(len(message))) + message
    with pytest.raises(DecodeError, match="EOF"):
        protobuf.decode(PROPS, message)


def test_last_of_repeated_times_wins() -> None:
    message = field(1, field(8, field(1, 5) + field(2, 7)) + field(8, field(1, 60)))
    assert protobuf.decode(CONFIG_MAP, message)["metadata"]["creationTimestamp"] == "1970-01-01T00:01:00Z"


def test_nanoseconds_are_cut_off_towards_zero() -> None:
    lease = schema_for("coordination.k8s.io", "v1", "Lease")
    for nanos, shown in ((2**64 - 5, "000000"), (1500, "000001")):
        message = field(2, field(3, field(1, 60) + field(2, nanos)))
        assert protobuf.decode(lease, message)["spec"]["acquireTime"] == f"1970-01-01T00:01:00.{shown}Z"
    message = field(1, field(8, field(1, 60) + field(2, 1_500_000_000)))
    assert protobuf.decode(CONFIG_MAP, message)["metadata"]["creationTimestamp"] == "1970-01-01T00:01:00Z"


@pytest.mark.parametrize("raw", [b"{broken", b"", b"\xff"])
def test_invalid_field_set_does_not_reject_the_object(raw: bytes) -> None:
    message = field(1, field(1, "a") + field(17, field(1, "m") + field(7, field(1, raw))))
    entry = protobuf.decode(CONFIG_MAP, message)["metadata"]["managedFields"][0]
    with pytest.raises(ValueError, match="a field set is an object"):
        fieldsv1.parse(entry["fieldsV1"])


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"\x08\x01", "proto: wrong wireType = 0 for field TypeMeta"),
        (b"\x0a\x02\x08\x01", "proto: wrong wireType = 0 for field APIVersion"),
        (b"\x10\x01", "proto: wrong wireType = 0 for field Raw"),
        (b"\x0c", "proto: Unknown: wiretype end group for non-group"),
    ],
)
def test_malformed_envelopes_are_rejected(content: bytes, complaint: str) -> None:
    with pytest.raises(DecodeError) as error:
        protobuf.unwrap(b"k8s\0" + content)
    assert str(error.value) == complaint
