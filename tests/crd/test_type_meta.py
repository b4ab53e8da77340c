"""kind and apiVersion of custom resources that a patch changes or a body repeats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.crd.defining import CRDS, define, definition, version
from tests.live import MERGE, Answer, Client, Live

GROUP = "typed.example.com"
SPEC = {"type": "object", "properties": {"i": {"type": "integer"}}}
SCHEMA = {"type": "object", "properties": {"spec": SPEC, "status": SPEC}}


@pytest.fixture(scope="module")
def typed(shared_live: Live) -> Iterator[str]:
    versions = [version(name, schema=SCHEMA, subresources={"status": {}}) for name in ("v1", "v2")]
    where = define(shared_live.client, definition("Typed", GROUP, *versions))
    yield f"{where}/v1/namespaces/default/typeds"
    shared_live.client.delete(f"{CRDS}/typeds.{GROUP}")


@pytest.fixture
def one(client: Client, typed: str) -> Iterator[str]:
    obj = {"apiVersion": f"{GROUP}/v1", "kind": "Typed", "metadata": {"name": "t"}, "spec": {"i": 1}}
    client.post(typed, obj)
    yield f"{typed}/t"
    client.ask("DELETE", f"{typed}/t")


def warnings(answer: Answer) -> list[str]:
    return answer.headers.get_all("Warning") or []


@pytest.mark.parametrize("given", [None, "", "/"])
@pytest.mark.parametrize("part", ["", "/status"])
def test_patch_without_api_version_is_500(client: Client, one: str, given: Any, part: str) -> None:
    answer = client.ask("PATCH", f"{one}{part}", {"apiVersion": given, "spec": {"i": 2}}, MERGE)
    why = "Object 'apiVersion' is missing in 'object has no apiVersion field'"
    assert (answer.status, answer.json["reason"]) == (500, "InternalError"), answer
    assert answer.json["message"] == f"Internal error occurred: {why}"
    assert client.get(one)["spec"] == {"i": 1}


@pytest.mark.parametrize(
    ("given", "group", "warned"),
    [
        (f"{GROUP}/v2", GROUP, False),
        (f"{GROUP}/v9", GROUP, True),
        ("other.example.com/v1", "other.example.com", False),
        ("v1", "", False),
    ],
)
def test_patch_to_another_version_is_invalid(
    client: Client, one: str, given: str, group: str, warned: bool
) -> None:
    answer = client.ask("PATCH", one, {"apiVersion": given, "spec": {"i": 2}}, MERGE)
    assert answer.status == 422, answer
    assert answer.json["details"].get("group", "") == group
    assert answer.json["details"]["causes"][0]["field"] == "apiVersion"
    assert warnings(answer) == (['299 - "unknown field \\"spec\\""'] if warned else [])


@pytest.mark.parametrize(
    ("given", "kept", "owned"),
    [
        ({"apiVersion": f"{GROUP}/v2"}, True, True),
        ({"apiVersion": f"{GROUP}/v9"}, False, False),
        ({"apiVersion": "other.example.com/v1"}, True, False),
        ({"kind": "Other"}, True, False),
    ],
)
def test_status_patch_keeps_kind_and_api_version(
    client: Client, one: str, given: dict[str, str], kept: bool, owned: bool
) -> None:
    answer = client.ask("PATCH", f"{one}/status", {**given, "status": {"i": 5}}, MERGE)
    assert answer.status == 200, answer
    found = answer.json
    assert (found["kind"], found["apiVersion"]) == ("Typed", f"{GROUP}/v1")
    assert found.get("status") == ({"i": 5} if kept else None)
    assert ("managedFields" in found["metadata"]) == owned


def test_patch_to_malformed_api_version_is_invalid(client: Client, one: str) -> None:
    answer = client.ask("PATCH", one, {"apiVersion": "a/b/c"}, MERGE)
    assert answer.status == 422, answer
    assert answer.json["message"].endswith(": unexpected GroupVersion string: a/b/c")
    assert '"kind\\":\\"Typed\\"' in answer.json["message"]


@pytest.mark.parametrize("given", ["", "/", None])
def test_body_without_api_version_is_rejected(client: Client, typed: str, given: str | None) -> None:
    body = {"apiVersion": given, "kind": "Typed", "metadata": {"name": "n"}}
    answer = client.ask("POST", typed, body)
    assert answer.status == 400, answer
    assert answer.json["message"].startswith("the API version in the data () does not match")


def test_repeated_kind_of_wrong_type_is_rejected(client: Client, typed: str) -> None:
    body = f'{{"apiVersion":"{GROUP}/v1","kind":1,"kind":"Typed","metadata":{{"name":"n"}}}}'
    answer = client.ask("POST", typed, body.encode())
    assert answer.status == 400, answer
    assert "cannot unmarshal number into Go struct field .kind of type string" in answer.json["message"]


def test_rejected_version_still_sends_warnings(client: Client, typed: str) -> None:
    body = '{"apiVersion":"other/v1","kind":"Typed","metadata":{"name":"n"},"spec":{"i":1,"i":2}}'
    answer = client.ask("POST", typed, body.encode())
    assert (answer.status, warnings(answer)) == (400, ['299 - "duplicate field \\"spec.i\\""'])


def test_built_in_body_may_have_empty_api_version(client: Client, namespace: str) -> None:
    body = {"apiVersion": "/", "kind": "ConfigMap", "metadata": {"name": "a"}}
    answer = client.ask("POST", f"/api/v1/namespaces/{namespace}/configmaps", body)
    assert answer.status == 201, answer


@pytest.mark.parametrize(
    ("kind", "why"), [(1, "cannot convert int64 to string"), ({}, "unrecognized type: string")]
)
def test_strategic_patch_with_kind_of_wrong_type_is_rejected(
    client: Client, namespace: str, kind: Any, why: str
) -> None:
    where = f"/api/v1/namespaces/{namespace}/configmaps"
    client.post(where, {"metadata": {"name": "a"}})
    patch = {"kind": kind, "data": {"a": "b"}}
    answer = client.ask("PATCH", f"{where}/a", patch, "application/strategic-merge-patch+json")
    assert answer.status == 422, answer
    assert answer.json["message"].endswith(why)
    assert "map[data:map[a:b] kind:" in answer.json["message"]


@pytest.mark.parametrize(
    ("part", "code", "message"),
    [
        ("", 405, f' is not supported on resources of kind "typeds.{GROUP}"'),
        ("/t", 405, f' is not supported on resources of kind "typeds.{GROUP}"'),
        ("/t/status", 405, f' is not supported on resources of kind "typeds.{GROUP}"'),
        ("/t/other", 404, f'typeds.{GROUP} "t" not found'),
    ],
)
def test_method_that_stands_for_no_verb(
    client: Client, typed: str, part: str, code: int, message: str
) -> None:
    answer = client.ask("OPTIONS", f"{typed}{part}")
    assert (answer.status, answer.json["message"]) == (code, message)


def test_number_beyond_every_float_without_a_kind(client: Client, typed: str) -> None:
    answer = client.ask("POST", typed, b'{"spec":{"i":1e400}}')
    why = "json: cannot unmarshal number 1e400 into Go value of type float64"
    message = f'Typed in version "v1" cannot be handled as a Typed: {why}'
    assert (answer.status, answer.json["message"]) == (400, message)


@pytest.mark.parametrize("part", ["", "/status"])
def test_json_patch_with_a_null_api_version_is_invalid(client: Client, one: str, part: str) -> None:
    operation = {"op": "replace", "path": "/apiVersion", "value": None}
    answer = client.ask("PATCH", f"{one}{part}", [operation], "application/json-patch+json")
    why = ".apiVersion accessor error: <nil> is of the type <nil>, expected string"
    assert answer.status == 422, answer
    assert answer.json["message"].endswith(why)


def test_patch_to_a_group_without_version_warns_of_unknown_fields(client: Client, one: str) -> None:
    answer = client.ask("PATCH", one, {"apiVersion": f"{GROUP}/"}, MERGE)
    assert answer.status == 500, answer
    assert warnings(answer) == ['299 - "unknown field \\"spec\\""']


@pytest.mark.parametrize(
    ("given", "unknown"),
    [
        (f"{GROUP}/v2", ["extra", "spec.q"]),
        (f"{GROUP}/v9", ["extra", "spec"]),
        ("other.example.com/v1", []),
    ],
)
@pytest.mark.parametrize("verb", ["POST", "PUT"])
def test_body_of_another_version_is_validated_by_that_version(
    client: Client, typed: str, one: str, given: str, unknown: list[str], verb: str
) -> None:
    where = typed if verb == "POST" else one
    body = {
        "apiVersion": given,
        "kind": "Typed",
        "metadata": {"name": "t"},
        "spec": {"i": 1, "q": 2},
        "extra": 1,
    }
    answer = client.ask(verb, where, body)
    other = f"the API version in the data ({given}) does not match the expected API version ({GROUP}/v1)"
    assert (answer.status, answer.json["message"]) == (400, other)
    assert warnings(answer) == [f'299 - "unknown field \\"{name}\\""' for name in unknown]

    strict = client.ask(verb, f"{where}?fieldValidation=Strict", body)
    listed = ", ".join(f'unknown field "{name}"' for name in unknown)
    version = given.rpartition("/")[2]
    expected = f'Typed in version "{version}" cannot be handled as a Typed: strict decoding error: {listed}'
    assert (strict.status, strict.json["message"]) == (400, expected if unknown else other)
