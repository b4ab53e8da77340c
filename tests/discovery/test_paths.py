"""Non-resource paths: methods, media types, unknown paths."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from kubist.api.config import Config
from kubist.api.discovery.health import Health
from kubist.api.discovery.paths import Paths
from kubist.api.request import parse, parse_query
from kubist.api.resources.context import User
from kubist.api.resources.resource import Resources
from kubist.base.http.messages import Answer, Request, Response
from kubist.model.meta.status import APIError


def ask(method: str, path: str, accept: str = "", query: str = "", config: Config | None = None) -> Response:
    paths = Paths(config or Config(), Resources(), Health())
    request = Request(method, path, query, {"accept": accept} if accept else {})

    async def answer() -> Answer:
        asked = parse_query(query)
        return await paths.answer(request, parse(method, path, asked), User("admin"), asked)

    found = asyncio.run(answer())
    assert isinstance(found, Response)
    return found


@pytest.mark.parametrize("path", ["/", "/apis", "/apis/", "/apis/apps", "/healthz", "/openapi/v3"])
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_some_paths_accept_any_method(method: str, path: str) -> None:
    assert ask(method, path).status == 200


@pytest.mark.parametrize("path", ["/api", "/api/v1", "/api/v1/", "/apis/apps/v1", "/version"])
def test_other_paths_accept_only_get(path: str) -> None:
    assert ask("GET", path).status == 200
    for method in ("POST", "HEAD", "OPTIONS"):
        with pytest.raises(APIError) as refused:
            ask(method, path)
        assert (refused.value.code, refused.value.details) == (405, {})


def test_version_shows_the_reported_version() -> None:
    found = ask("GET", "/version", config=Config(reported_version="v1.36.4-custom"))
    assert isinstance(found.body, bytes)
    assert orjson.loads(found.body)["gitVersion"] == "v1.36.4-custom"


@pytest.mark.parametrize("path", ["/index", "/apis/nope", "/apis/nope/v1", "/openapi", "/healthz/nothing"])
def test_unknown_path_gets_plain_404(path: str) -> None:
    found = ask("GET", path)
    assert (found.status, found.body) == (404, b"404 page not found\n")


@pytest.mark.parametrize("path", ["/api/v2", "/apis/apps/v9"])
def test_unknown_version_of_known_group_gets_status_404(path: str) -> None:
    with pytest.raises(APIError) as refused:
        ask("GET", path)
    assert (refused.value.code, refused.value.details) == (404, {})


@pytest.mark.parametrize(
    ("path", "accept", "details"),
    [
        ("/api/v1", "text/html", {}),
        ("/version", "application/yaml", {}),
        ("/version", "application/*", {}),
        ("/apis", "text/html", None),
        ("/apis/apps", "text/html", None),
        ("/apis/apps/v1", "application/json;as=Table;g=meta.k8s.io;v=v1", None),
    ],
)
def test_unacceptable_media_type_gets_406_with_or_without_details(
    path: str, accept: str, details: dict[str, str] | None
) -> None:
    with pytest.raises(APIError) as refused:
        ask("GET", path, accept)
    assert (refused.value.code, refused.value.details) == (406, details)


@pytest.mark.parametrize("serializer", ["application/yaml", "application/vnd.kubernetes.protobuf"])
@pytest.mark.parametrize("path", ["/api", "/apis", "/apis/apps", "/apis/apps/v1"])
def test_documents_are_served_as_yaml_and_protobuf(path: str, serializer: str) -> None:
    found = ask("GET", path, serializer)
    assert dict(found.headers)[b"Content-Type"] == serializer.encode()


def test_index_and_version_are_indented() -> None:
    for path in ("/", "/version"):
        found = ask("GET", path)
        assert isinstance(found.body, bytes)
        assert found.body.startswith(b'{\n  "')
    index = orjson.loads(b"".join([ask("GET", "/").body]))["paths"]  # type: ignore[list-item]
    assert {"/apis/apps/v1", "/openapi/v2", "/readyz/ping"} <= set(index)
    assert index == sorted(index)
