"""Accept headers: the chosen representation, and the rejections."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubist.model.codec import negotiate
from kubist.model.codec.negotiate import JSON, PROTOBUF, YAML, Endpoint, MediaType, NoRoute, NotAcceptable
from kubist.model.meta.status import APIError

BUILT_IN = Endpoint(transforms=True, table=True, literal=True)
CUSTOM = Endpoint(plain=(JSON, YAML), transforms=True, table=True)
PLAIN = Endpoint()
TABLE = ";as=Table;g=meta.k8s.io;v=v1"
PARTIAL = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


@pytest.mark.parametrize(
    ("header", "endpoint", "chosen"),
    [
        ("", BUILT_IN, MediaType(JSON)),
        ("*/*", BUILT_IN, MediaType(JSON)),
        (YAML, BUILT_IN, MediaType(YAML)),
        ("text/html, application/yaml;q=0.1", BUILT_IN, MediaType(YAML)),
        ("application/json;q=0.1, application/yaml;q=0.2", BUILT_IN, MediaType(YAML)),
        ("application/json;q=0", BUILT_IN, MediaType(JSON)),
        ("application/json;q=abc", BUILT_IN, MediaType(JSON)),
        ("*/*, application/yaml", BUILT_IN, MediaType(YAML)),
        ("application/json;pretty=1", BUILT_IN, MediaType(JSON, pretty=True)),
        ("application/json;stream=watch", BUILT_IN, MediaType(JSON)),
        ("application/json;whatever=x", BUILT_IN, MediaType(JSON)),
        ("application/json;sv=v1", BUILT_IN, MediaType(JSON)),
        (JSON + TABLE, BUILT_IN, MediaType(JSON, "Table", "v1")),
        ("*/*" + TABLE, BUILT_IN, MediaType(JSON, "Table", "v1")),
        (PROTOBUF + TABLE + "," + JSON + TABLE, BUILT_IN, MediaType(JSON, "Table", "v1")),
        (JSON + TABLE + "," + JSON, PLAIN, MediaType(JSON)),
        (PROTOBUF + PARTIAL, CUSTOM, MediaType(PROTOBUF, "PartialObjectMetadata", "v1")),
        (f"{PROTOBUF},{JSON}", CUSTOM, MediaType(JSON)),
        ("application/*", CUSTOM, MediaType(JSON)),
    ],
)
def test_best_available_accept_clause_wins(header: str, endpoint: Endpoint, chosen: MediaType) -> None:
    assert negotiate.negotiate(header, endpoint) == chosen


def test_406_of_a_collection_lists_stream_types() -> None:
    with pytest.raises(NoRoute) as refused:
        negotiate.negotiate("text/html", Endpoint(literal=True, watched=True))
    assert refused.value.message.endswith(f"{PROTOBUF}, {JSON};stream=watch, {PROTOBUF};stream=watch")


@pytest.mark.parametrize(
    ("header", "endpoint", "error"),
    [
        ("text/html", BUILT_IN, NoRoute),
        ("application/*", BUILT_IN, NoRoute),
        ("Application/JSON", BUILT_IN, NoRoute),
        ("application/cbor", BUILT_IN, NoRoute),
        ("text/html", CUSTOM, NotAcceptable),
        (PROTOBUF, CUSTOM, NotAcceptable),
        ("application/json;as=Chart;g=meta.k8s.io;v=v1", BUILT_IN, NotAcceptable),
        ("application/json;as=Table", BUILT_IN, NotAcceptable),
        ("application/json;g=meta.k8s.io;v=v1", BUILT_IN, NotAcceptable),
        ("application/json;as=Table;g=meta.k8s.io;v=v2", BUILT_IN, NotAcceptable),
        (PROTOBUF + TABLE, BUILT_IN, NotAcceptable),
        ("application/yaml;stream=watch", BUILT_IN, NotAcceptable),
        ("application/json;stream=other", BUILT_IN, NotAcceptable),
        (JSON + TABLE, PLAIN, NotAcceptable),
        ("application/json;sv=v1", PLAIN, NotAcceptable),
        ("application/json;sv=v2", BUILT_IN, NotAcceptable),
    ],
)
def test_unavailable_representation_is_one_of_two_406_errors(
    header: str, endpoint: Endpoint, error: type[APIError]
) -> None:
    with pytest.raises(error) as refused:
        negotiate.negotiate(header, endpoint)
    assert refused.value.code == 406
    assert refused.value.details == ({} if error is NoRoute else None)


@pytest.mark.parametrize("header", [YAML, f"{YAML}, {JSON}"])
def test_watch_in_yaml_is_not_acceptable(header: str) -> None:
    with pytest.raises(NotAcceptable, match="stream=watch"):
        negotiate.negotiate_stream(header, BUILT_IN)


@pytest.mark.parametrize(
    ("header", "serializer"),
    [
        ("", JSON),
        ("APPLICATION/JSON", JSON),
        (" application/json ; charset=utf-8", JSON),
        ('application/yaml;x="a b"; y=1;', YAML),
        ("application/json;", JSON),
        ("application/json;;", None),
        ("application/json;charset", None),
        ("application/json;a=", None),
        ("application/json;a=b;a=c", None),
        ("application/json;a=b/c", None),
        ("application/json,application/yaml", None),
        (";", None),
        ("text/plain", None),
    ],
)
def test_content_type_must_be_known_and_well_formed(header: str, serializer: str | None) -> None:
    if serializer is not None:
        assert negotiate.content_type(header) == serializer
        return
    with pytest.raises(APIError) as refused:
        negotiate.content_type(header)
    assert (refused.value.code, refused.value.details) == (415, None)


def test_browsers_and_curl_get_indented_responses() -> None:
    assert negotiate.wants_pretty({}, "curl/8.1")
    assert negotiate.wants_pretty({"pretty": "true"}, "kubectl")
    assert not negotiate.wants_pretty({"pretty": "0"}, "curl/8.1")
    assert not negotiate.wants_pretty({}, "kubectl")


_WORDS = st.sampled_from(
    [
        "application",
        "json",
        "yaml",
        "*",
        "text",
        "as=Table",
        "g=meta.k8s.io",
        "v=v1",
        "q=0.5",
        "q=x",
        "=",
        "stream=watch",
    ]
)
_HEADERS = st.lists(st.tuples(_WORDS | st.text(max_size=4), st.sampled_from("/;,= "))).map(
    lambda parts: "".join(word + mark for word, mark in parts)
)


@given(_HEADERS | st.text(max_size=60))
@settings(max_examples=400)
def test_any_accept_header_is_parsed_or_rejected(header: str) -> None:
    for endpoint in (BUILT_IN, CUSTOM, PLAIN):
        with contextlib.suppress(NoRoute, NotAcceptable):
            assert negotiate.negotiate(header, endpoint).serializer in negotiate.ALL


def test_beginning_of_a_very_long_accept_header_is_parsed() -> None:
    clauses = [f"a/b;q=0.{i:05}" for i in range(1000)]
    assert negotiate.negotiate(",".join([*clauses, YAML]), CUSTOM).serializer == YAML
    assert len(negotiate.parse_accept(",".join(clauses * 100))) < 2000
    assert negotiate.negotiate(",".join([YAML, *clauses * 100]), CUSTOM).serializer == YAML
    with pytest.raises(NoRoute):
        negotiate.negotiate("," * 1_000_000, BUILT_IN)
