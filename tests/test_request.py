"""Parsing of request lines."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubist.api import request
from kubist.api.request import RequestInfo


def parse(line: str) -> RequestInfo:
    method, target = line.split()
    path, _, query = target.partition("?")
    return request.parse(method, path, request.parse_query(query))


@pytest.mark.parametrize(
    ("line", "verb", "group", "version", "namespace", "resource", "subresource", "name"),
    [
        ("GET /api/v1/pods", "list", "", "v1", "", "pods", "", ""),
        ("GET /api/v1/namespaces/a/pods", "list", "", "v1", "a", "pods", "", ""),
        ("GET /api/v1/namespaces/a/pods/b", "get", "", "v1", "a", "pods", "", "b"),
        ("HEAD /api/v1/namespaces/a/pods/b", "get", "", "v1", "a", "pods", "", "b"),
        ("POST /api/v1/namespaces/a/pods", "create", "", "v1", "a", "pods", "", ""),
        ("POST /api/v1/namespaces/a/pods/b/binding", "create", "", "v1", "a", "pods", "binding", "b"),
        ("PUT /api/v1/namespaces/a/pods/b/status", "update", "", "v1", "a", "pods", "status", "b"),
        ("PATCH /api/v1/namespaces/a/pods/b", "patch", "", "v1", "a", "pods", "", "b"),
        ("DELETE /api/v1/namespaces/a/pods/b", "delete", "", "v1", "a", "pods", "", "b"),
        ("DELETE /api/v1/namespaces/a/pods", "deletecollection", "", "v1", "a", "pods", "", ""),
        ("GET /api/v1/namespaces", "list", "", "v1", "", "namespaces", "", ""),
        ("GET /api/v1/namespaces/a", "get", "", "v1", "a", "namespaces", "", "a"),
        ("PUT /api/v1/namespaces/a/finalize", "update", "", "v1", "a", "namespaces", "finalize", "a"),
        ("GET /api/v1/namespaces/a/status", "get", "", "v1", "a", "namespaces", "status", "a"),
        ("GET /apis/apps/v1/deployments", "list", "apps", "v1", "", "deployments", "", ""),
        (
            "GET /apis/apps/v1/namespaces/a/deployments/d/scale",
            "get",
            "apps",
            "v1",
            "a",
            "deployments",
            "scale",
            "d",
        ),
        ("GET /api/v1/pods?watch=1", "watch", "", "v1", "", "pods", "", ""),
        ("GET /api/v1/pods?watch=false", "list", "", "v1", "", "pods", "", ""),
        ("GET /api/v1/namespaces/a/pods/b?watch=1", "get", "", "v1", "a", "pods", "", "b"),
        ("GET /api/v1/watch/pods", "watch", "", "v1", "", "pods", "", ""),
        ("GET /api/v1/watch/namespaces/a/pods/b", "watch", "", "v1", "a", "pods", "", "b"),
        ("GET /api/v1/pods?fieldSelector=metadata.name%3Db", "list", "", "v1", "", "pods", "", "b"),
        ("GET /api/v1/namespaces/a/pods/b%2Fc", "get", "", "v1", "a", "pods", "c", "b"),
    ],
)
def test_resource_request(
    line: str, verb: str, group: str, version: str, namespace: str, resource: str, subresource: str, name: str
) -> None:
    info = parse(line)
    assert info.is_resource
    found = (info.verb, info.group, info.version, info.namespace, info.resource, info.subresource, info.name)
    assert found == (verb, group, version, namespace, resource, subresource, name)


@pytest.mark.parametrize(
    "path", ["/", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz/x", "//"]
)
def test_other_paths_are_not_resource_requests(path: str) -> None:
    info = parse(f"GET {path}")
    assert not info.is_resource and info.verb == "get" and info.path == path


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("", {}),
        ("a=1&b=2", {"a": "1", "b": "2"}),
        ("a=1&a=2", {"a": "1"}),
        ("a", {"a": ""}),
        ("a=b+c%3D", {"a": "b c="}),
        ("a=%zz&b=1", {"b": "1"}),
        ("a=1;b=2&c=3", {"c": "3"}),
        ("&&a=1&", {"a": "1"}),
    ],
)
def test_query(query: str, values: dict[str, str]) -> None:
    assert request.parse_query(query) == values


def test_repeated_parameter_has_all_values() -> None:
    assert request.query_values("dryRun=All&x=1&dryRun=b%20c", "dryRun") == ["All", "b c"]


def test_query_with_too_many_parameters_has_none() -> None:
    """As in Go, whose limit is the same."""
    query = "&".join(f"a{number}=1" for number in range(request.PARAMETERS))
    assert len(request.parse_query(query)) == request.PARAMETERS
    assert request.query_values(query, "a5") == ["1"]
    assert request.parse_query(query + "&b=1") == {}
    assert request.query_values(query + "&b=1", "b") == []


@given(
    st.lists(
        st.sampled_from(["%", "=", "_", "a", "4", "F", "%41", "%c3", "%A9", "\u00e9", "%0a", "\n", "%25"])
    )
)
def test_escapes_are_decoded_as_in_the_standard_library(pieces: list[str]) -> None:
    assert request.unescape("".join(pieces)) == unquote("".join(pieces))
