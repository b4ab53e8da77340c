"""OpenAPI documents: completeness, ETags, conditional and range requests."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import orjson
import pytest

from kubist.api.discovery import openapi_types, openapi_v3
from kubist.api.discovery.openapi import OpenAPI
from kubist.api.discovery.openapi_types import custom
from kubist.api.discovery.openapi_v3 import referred
from kubist.api.resources.resource import Resource, Resources, builtin
from kubist.base.http.messages import Request, Response
from kubist.model.codec import protobuf_wire as wire

from .test_documents import custom as custom_resource

GV = sorted({f"apis/{r.group}/{r.version}" if r.group else "api/v1" for r in builtin()})


def ask(path: str, openapi: OpenAPI | None = None, **headers: str) -> Response:
    async def answer() -> Response | None:
        served = openapi or OpenAPI(Resources())
        path_, _, query = path.partition("?")
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        asked = dict(pair.split("=") for pair in query.split("&") if pair)
        return await served.answer(Request("GET", path_, query, given), path_, asked)

    found = asyncio.run(answer())
    assert found is not None
    return found


def body(response: Response) -> Any:
    assert isinstance(response.body, bytes)
    return orjson.loads(response.body)


def header(response: Response, name: bytes) -> str:
    return dict(response.headers)[name].decode()


@pytest.mark.parametrize("name", ["api", "apis", "version", "apis/apps", *GV])
def test_document_contains_every_type_it_refers_to(name: str) -> None:
    document = body(ask(f"/openapi/v3/{name}"))
    assert referred(document) <= document["components"].get("schemas", {}).keys()


def test_index_links_every_document() -> None:
    openapi = OpenAPI(Resources())
    index = body(ask("/openapi/v3", openapi))["paths"]
    assert set(GV) < index.keys()
    found = ask(index["apis/batch/v1"]["serverRelativeURL"], openapi)
    assert found.status == 200
    assert header(found, b"Cache-Control") == "public, immutable"


def test_stale_hash_redirects_to_the_current_one() -> None:
    found = ask("/openapi/v3/apis/batch/v1?hash=old")
    assert found.status == 301
    assert header(found, b"Location").startswith("/openapi/v3/apis/batch/v1?hash=")


def test_operation_ids_match_generated_clients() -> None:
    document = body(ask("/openapi/v3/apis/rbac.authorization.k8s.io/v1"))
    path = document["paths"]["/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles/{name}"]
    assert path["put"]["operationId"] == "replaceRbacAuthorizationV1NamespacedRole"
    assert path["put"]["tags"] == ["rbacAuthorization_v1"]
    assert [parameter["name"] for parameter in path["parameters"]] == ["name", "namespace", "pretty"]


def test_version_2_is_one_complete_document() -> None:
    document = body(ask("/openapi/v2"))
    assert referred(document) <= {*document["definitions"], *document["parameters"]}
    assert document["definitions"]["io.k8s.apimachinery.pkg.api.resource.Quantity"]["type"] == "string"


def test_version_2_as_protobuf_has_every_definition() -> None:
    openapi = OpenAPI(Resources())
    listed = body(ask("/openapi/v2", openapi))
    found = ask("/openapi/v2", openapi, accept="application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
    assert isinstance(found.body, bytes)
    fields = dict(wire.fields(found.body, "Document"))
    definitions = fields[9]
    assert isinstance(definitions, bytes)
    assert len(wire.fields(definitions, "Definitions")) == len(listed["definitions"])


def test_current_copy_gets_304() -> None:
    openapi = OpenAPI(Resources())
    tag = header(ask("/openapi/v3/version", openapi), b"ETag")
    assert ask("/openapi/v3/version", openapi, if_none_match=tag).status == 304
    assert ask("/openapi/v3/version", openapi, if_none_match="*").status == 304
    assert ask("/openapi/v3/version", openapi, if_none_match='"other"').status == 200
    later = "Fri, 01 Jan 2999 00:00:00 GMT"
    assert ask("/openapi/v3/version", openapi, if_modified_since=later).status == 304


@pytest.mark.parametrize(
    ("asked", "status", "start"),
    [
        ("bytes=0-9", 206, b'{"openapi"'),
        ("bytes=-1", 206, b"}"),
        ("bytes=9-2", 200, b"{"),
        ("bytes=0-1,3-4", 200, b"{"),
        ("lines=1-2", 200, b"{"),
    ],
)
def test_single_byte_range_gets_206(asked: str, status: int, start: bytes) -> None:
    found = ask("/openapi/v3/version", range=asked)
    assert isinstance(found.body, bytes)
    assert (found.status, found.body[: len(start)]) == (status, start)


def test_errors_have_no_body() -> None:
    assert ask("/openapi/v2", accept="application/yaml").status == 406
    assert ask("/openapi/v3/api/v1", accept="text/html").body == b""
    assert ask("/openapi/v3/nothing").status == 404
    assert ask("/openapi/v3/").status == 404


def test_version_2_is_compressed_on_request() -> None:
    found = ask("/openapi/v2", accept_encoding="gzip")
    assert header(found, b"Content-Encoding") == "gzip"
    assert isinstance(found.body, bytes)
    assert gzip.decompress(found.body).startswith(b'{"swagger"')


def gadget() -> Resource:
    """Custom resource with every construct that v2 and v3 describe differently."""
    fields = {
        "any": {"x-kubernetes-preserve-unknown-fields": True},
        "loose": {"type": "object", "properties": {"k": {}}, "x-kubernetes-preserve-unknown-fields": True},
        "maybe": {"type": "string", "nullable": True, "default": "x", "enum": ["x"]},
        "port": {"x-kubernetes-int-or-string": True},
        "inner": {"type": "object", "x-kubernetes-embedded-resource": True},
        "one": {"type": "object", "oneOf": [{"required": ["a"]}]},
    }
    spec = {"type": "object", "properties": fields}
    schema = {"type": "object", "properties": {"spec": spec}}
    resource = custom_resource("x.example.com", "v1", "Gadget")
    version = type("Version", (), {"spec": {"schema": {"openAPIV3Schema": schema}}})()
    resource.custom = type("Custom", (), {"version": version})()
    return resource


def test_version_3_describes_custom_types_fully() -> None:
    types = custom(gadget())
    kind = types["com.example.x.v1.Gadget"]
    assert kind["x-kubernetes-group-version-kind"] == [
        {"group": "x.example.com", "kind": "Gadget", "version": "v1"}
    ]
    fields = kind["properties"]["spec"]["properties"]
    assert fields["port"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert fields["inner"]["required"] == ["kind", "apiVersion"]
    assert fields["maybe"] == {"type": "string", "nullable": True, "default": "x", "enum": ["x"]}
    assert types["com.example.x.v1.GadgetList"]["required"] == ["items"]


def test_version_2_omits_keywords_that_old_clients_misread() -> None:
    fields = custom(gadget(), old=True)["com.example.x.v1.Gadget"]["properties"]["spec"]["properties"]
    assert fields == {
        "any": {"x-kubernetes-preserve-unknown-fields": True},
        "loose": {"x-kubernetes-preserve-unknown-fields": True},
        "maybe": {"enum": ["x"]},
        "port": {"x-kubernetes-int-or-string": True},
        "inner": {"type": "object", "x-kubernetes-embedded-resource": True},
        "one": {"type": "object"},
    }


def test_built_in_documents_do_not_change_with_custom_resources() -> None:
    resources = Resources()
    openapi = OpenAPI(resources)
    tags = body(ask("/openapi/v3", openapi))["paths"]
    resources.add(gadget())
    with_gadget = body(ask("/openapi/v3", openapi))["paths"]
    assert with_gadget.keys() - tags.keys() == {"apis/x.example.com/v1"}
    assert {name: with_gadget[name] for name in tags} == tags
    resources.remove("x.example.com", "v1", "gadgets")
    assert body(ask("/openapi/v3", openapi))["paths"] == tags


def test_custom_document_has_no_security_and_omits_some_groups() -> None:
    document = openapi_v3.document([], openapi_types.beside_custom, openapi_v3.CUSTOM_INFO)
    assert "securitySchemes" not in document["components"]
    options = openapi_types.beside_custom("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions")
    groups = {kind["group"] for kind in options["x-kubernetes-group-version-kind"]}
    assert "apps" in groups
    assert "apiextensions.k8s.io" not in groups
