"""Unusual paths get the reference's responses."""

from __future__ import annotations

import pytest

from tests.live import Client

TEXT = "text/plain; charset=utf-8"


@pytest.mark.parametrize(
    "path", ["//", "///", "/healthz/", "/livez/ping/", "/readyz/nope", "/logs", "/openapi/", "/apis//"]
)
def test_plain_not_found(client: Client, path: str) -> None:
    answer = client.ask("GET", path)
    assert (answer.status, answer.headers["content-type"]) == (404, TEXT)
    assert answer.body == b"404 page not found\n"


@pytest.mark.parametrize("path", ["/", "/index.html"])
def test_the_index(client: Client, path: str) -> None:
    assert "/readyz/shutdown" in client.get(path)["paths"]


@pytest.mark.parametrize("path", ["/api/v1/watch", "/api/v1/proxy/", "/apis/apps/v1/watch"])
def test_resource_path_without_resource_gets_500(client: Client, path: str) -> None:
    answer = client.ask("GET", path)
    assert (answer.status, answer.headers["content-type"]) == (500, TEXT)
    assert b"unable to determine kind and namespace from url, " + path.encode() in answer.body


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/proxy/nodes",
        "/api/v1/proxy/nodes/a",
        "/api/v1/proxy/nodes/a/b/c",
        "/api/v1/proxy/namespaces/default/pods/a",
        "/api/v1/proxy/namespaces/default/services/a/b",
        "/apis/apps/v1/proxy/deployments",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS"])
def test_removed_proxy_paths_get_404(client: Client, path: str, method: str) -> None:
    answer = client.ask(method, path)
    assert answer.status == 404
    assert answer.json["message"] == "the server could not find the requested resource"


def test_path_below_version_gets_json_404(client: Client) -> None:
    assert client.ask("GET", "/version/x").headers["content-type"] == "application/json"


def test_subresource_without_name_gets_400(client: Client) -> None:
    answer = client.ask("GET", "/api/v1/namespaces/default/pods//log")
    assert answer.status == 400 and b"name must be provided" in answer.body


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("", "json parse error: unexpected end of JSON input (<empty>)"),
        ('{"a"', 'json parse error: unexpected end of JSON input ({"a")'),
        (
            '{"kind":5}',
            'json parse error: json: cannot unmarshal number into Go struct field .kind of type string ({"kind":5})',
        ),
        ("a: b", "json parse error: invalid character 'a' looking for beginning of value (613a2062)"),
    ],
)
def test_error_for_body_without_kind_quotes_the_body(client: Client, body: str, why: str) -> None:
    answer = client.ask("POST", "/api/v1/namespaces", body.encode())
    assert answer.status == 400
    assert answer.json["message"] == (
        f"the object provided is unrecognized (must be of type Namespace): couldn't get version/kind; {why}"
    )
