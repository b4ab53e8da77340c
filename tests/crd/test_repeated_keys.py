"""Repeated keys in a body: the last value counts, and field validation reports them, for every verb and format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.crd.defining import CRDS, define, definition, version
from tests.live import MERGE, Answer, Client, Live

GROUP = "repeated.example.com"
KIND = f'"apiVersion":"{GROUP}/v1","kind":"Widget"'
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "n": {"type": "integer"},
                "s": {"type": "string"},
                "o": {
                    "type": "object",
                    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "list": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"k": {"type": "string"}}},
                },
                "inner": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
            },
        },
        "status": {"type": "object", "properties": {"n": {"type": "integer"}}},
    },
}


@pytest.fixture(scope="module")
def widgets(shared_live: Live) -> Iterator[str]:
    client = shared_live.client
    crd = definition("Widget", GROUP, version(schema=SCHEMA, subresources={"status": {}}))
    where = define(client, crd)
    yield f"{where}/v1/namespaces/default/widgets"
    client.delete(f"{CRDS}/widgets.{GROUP}")


@pytest.fixture
def widget(client: Client, widgets: str) -> Iterator[str]:
    client.post(widgets, {**_kind(), "metadata": {"name": "w"}, "spec": {"n": 0}})
    yield f"{widgets}/w"
    client.ask("DELETE", f"{widgets}/w")


def _kind() -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Widget"}


def warnings(answer: Answer) -> list[str]:
    texts = answer.headers.get_all("Warning") or []
    return [text.removeprefix('299 - "')[:-1].replace('\\"', '"') for text in texts]


def fields_of(answer: Answer) -> Any:
    return answer.json["metadata"]["managedFields"][0]["fieldsV1"]


BODIES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "a number": ('"n":1,"n":2', {"n": 2}, ["spec.n"]),
    "an object": ('"o":{"a":1},"o":{"b":2}', {"o": {"b": 2}}, ["spec.o"]),
    "inside an object": ('"o":{"a":1,"a":2}', {"o": {"a": 2}}, ["spec.o.a"]),
    "inside what is preserved": (
        '"free":{"x":{"y":1,"y":{"z":2}}}',
        {"free": {"x": {"y": {"z": 2}}}},
        ["spec.free.x.y"],
    ),
    "inside a list": ('"list":[{"k":"a","k":"b"}]', {"list": [{"k": "b"}]}, ["spec.list[0].k"]),
    "both levels": ('"o":{"a":1,"a":2},"o":{"a":3}', {"o": {"a": 3}}, ["spec.o.a", "spec.o"]),
    "an embedded object": (
        '"inner":{"apiVersion":"v1","kind":"X","metadata":{"name":"a","name":"b"}}',
        {"inner": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "b"}}},
        ["spec.inner.metadata.name"],
    ),
    "wrong before": ('"n":"x","n":2', {"n": 2}, ["spec.n"]),
}


@pytest.mark.parametrize("case", BODIES)
@pytest.mark.parametrize("verb", ["POST", "PUT", "PATCH"])
def test_last_of_repeated_keys_counts(
    client: Client, widgets: str, widget: str, verb: str, case: str
) -> None:
    spec, expected, paths = BODIES[case]
    name = "other" if verb == "POST" else "w"
    rest = f'"metadata":{{"name":"{name}"}}'
    if verb == "PUT":
        held = client.get(widget)["metadata"]["resourceVersion"]
        rest = f'"metadata":{{"name":"{name}","resourceVersion":"{held}"}}'
    body = f'{{{KIND},{rest},"spec":{{{spec}}}}}'
    where = widgets if verb == "POST" else widget
    content_type = MERGE if verb == "PATCH" else "application/json"

    refused = client.ask(verb, f"{where}?fieldValidation=Strict", body.encode(), content_type)
    assert refused.status == (422 if verb == "PATCH" else 400), refused
    assert f'strict decoding error: duplicate field "{paths[0]}"' in refused.json["message"]
    silent = client.ask(verb, f"{where}?dryRun=All&fieldValidation=Ignore", body.encode(), content_type)
    assert (silent.status, warnings(silent)) == (201 if verb == "POST" else 200, [])

    answer = client.ask(verb, f"{where}?dryRun=All", body.encode(), content_type)
    assert answer.status == (201 if verb == "POST" else 200), answer
    assert warnings(answer) == [f'duplicate field "{path}"' for path in paths]
    if verb == "PATCH":
        expected = {"n": 0, **expected}
    assert answer.json["spec"] == expected


def test_managed_fields_name_fields_below_a_repeated_key(client: Client, widgets: str) -> None:
    body = f'{{{KIND},"metadata":{{"name":"m"}},"spec":{{"free":{{"x":1,"x":{{"y":{{"z":2}}}}}}}}}}'
    answer = client.ask("POST", f"{widgets}?dryRun=All", body.encode())
    assert fields_of(answer)["f:spec"]["f:free"] == {".": {}, "f:x": {".": {}, "f:y": {".": {}, "f:z": {}}}}


def test_last_value_of_the_wrong_type_is_invalid(client: Client, widgets: str) -> None:
    body = f'{{{KIND},"metadata":{{"name":"m"}},"spec":{{"n":1,"n":"x"}}}}'
    answer = client.ask("POST", widgets, body.encode())
    assert answer.status == 422, answer
    assert answer.json["details"]["causes"][0]["reason"] == "FieldValueTypeInvalid"
    assert warnings(answer) == ['duplicate field "spec.n"']


def test_repeated_metadata_of_a_custom_object(client: Client, widgets: str, widget: str) -> None:
    body = f'{{{KIND},"metadata":{{"name":"m","labels":{{"a":"b"}}}},"metadata":{{"name":"n"}}}}'
    answer = client.ask("POST", f"{widgets}?dryRun=All", body.encode())
    assert answer.status == 201, answer
    assert (answer.json["metadata"]["name"], answer.json["metadata"].get("labels")) == ("n", None)
    assert warnings(answer) == ['duplicate field "metadata"']
    taken = client.ask("POST", widgets, body.replace('"n"', '"w"').encode())
    assert (taken.status, warnings(taken)) == (409, ['duplicate field "metadata"'])


def test_repeated_keys_of_a_status(client: Client, widget: str) -> None:
    answer = client.ask("PATCH", f"{widget}/status", b'{"status":{"n":1,"n":2}}', MERGE)
    assert answer.status == 200, answer
    assert answer.json["status"] == {"n": 2}
    assert warnings(answer) == ['duplicate field "status.n"']


@pytest.mark.parametrize("content_type", ["application/yaml", APPLY])
def test_repeated_keys_of_yaml(client: Client, widgets: str, widget: str, content_type: str) -> None:
    apply = content_type == APPLY
    text = f"apiVersion: {GROUP}/v1\nkind: Widget\nmetadata: {{name: a}}\nspec:\n  s: b\n  s: c\n"
    where = f"{widgets}/a?fieldManager=m&dryRun=All" if apply else f"{widgets}?dryRun=All"
    answer = client.ask("PATCH" if apply else "POST", where, text.encode(), content_type)
    assert answer.status == 201, answer
    assert answer.json["spec"] == {"s": "c"}
    assert warnings(answer) == ['line 6: key "s" already set in map']


def test_json_patch_of_a_custom_object(client: Client, widget: str) -> None:
    body = b'[{"op":"add","path":"/spec/o","value":{"a":1,"a":2}}]'
    answer = client.ask("PATCH", widget, body, JSON_PATCH)
    assert answer.status == 200, answer
    assert answer.json["spec"]["o"] == {"a": 2}
    assert warnings(answer) == ['json patch duplicate field "[0].value.a"', 'duplicate field "spec.o.a"']
    test = b'[{"op":"test","path":"/spec/o","value":{"a":1,"a":2}}]'
    answer = client.ask("PATCH", widget, test, JSON_PATCH)
    assert answer.status == 200, answer
    assert warnings(answer) == ['json patch duplicate field "[0].value.a"']


DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "c"}]},
        },
    },
}


@pytest.fixture
def deployment(client: Client, namespace: str) -> str:
    where = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    client.post(where, DEPLOYMENT)
    return f"{where}/d"


def test_json_patch_of_a_built_in_object(client: Client, deployment: str) -> None:
    body = b'[{"op":"add","path":"/metadata/labels","value":{"x":"1","x":"2"}}]'
    answer = client.ask("PATCH", deployment, body, JSON_PATCH)
    assert answer.status == 200, answer
    assert answer.json["metadata"]["labels"] == {"x": "2"}
    assert warnings(answer) == [
        'json patch duplicate field "[0].value.x"',
        'duplicate field "metadata.labels.x"',
    ]


def test_json_patch_value_read_by_another_operation_has_no_repeated_keys(
    client: Client, deployment: str
) -> None:
    body = b"""[{"op":"add","path":"/metadata/labels","value":{"x":"1","x":"2"}},
                {"op":"test","path":"/metadata/labels/x","value":"2"},
                {"op":"copy","from":"/metadata/labels","path":"/metadata/annotations"}]"""
    answer = client.ask("PATCH", deployment, body, JSON_PATCH)
    assert answer.status == 200, answer
    assert warnings(answer) == ['json patch duplicate field "[0].value.x"']


def test_json_patch_copy_keeps_repeated_keys(client: Client, deployment: str) -> None:
    body = b"""[{"op":"add","path":"/metadata/labels","value":{"x":"1","x":"2"}},
                {"op":"copy","from":"/metadata/labels","path":"/metadata/annotations"}]"""
    answer = client.ask("PATCH", deployment, body, JSON_PATCH)
    assert answer.status == 200, answer
    assert sorted(warnings(answer)) == [
        'duplicate field "metadata.annotations.x"',
        'duplicate field "metadata.labels.x"',
        'json patch duplicate field "[0].value.x"',
    ]


def test_strict_patch_reports_all_duplicates_at_once(client: Client, deployment: str) -> None:
    body = b'[{"op":"add","path":"/metadata/labels","value":{"x":"1","x":"2"}}]'
    answer = client.ask("PATCH", f"{deployment}?fieldValidation=Strict", body, JSON_PATCH)
    assert answer.status == 422, answer
    both = 'json patch duplicate field "[0].value.x", duplicate field "metadata.labels.x"'
    assert answer.json["message"].endswith(f"strict decoding error: {both}")


def test_strategic_merge_of_a_list_item(client: Client, deployment: str) -> None:
    body = b'{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"x","image":"y"}]}}}}'
    refused = client.ask("PATCH", f"{deployment}?fieldValidation=Strict", body, STRATEGIC)
    assert refused.status == 422, refused
    answer = client.ask("PATCH", deployment, body, STRATEGIC)
    assert answer.status == 200, answer
    assert answer.json["spec"]["template"]["spec"]["containers"][0]["image"] == "y"
    assert warnings(answer) == ['duplicate field "spec.template.spec.containers[0].image"']


def test_overridden_repeated_values_must_have_the_right_type(client: Client, namespace: str) -> None:
    where = f"/api/v1/namespaces/{namespace}/configmaps"
    for data in ('"data":{"a":1,"a":"b"}', '"data":{"a":1},"data":{"a":"b"}', '"data":[],"data":{}'):
        answer = client.ask("POST", where, f'{{"metadata":{{"name":"a"}},{data}}}'.encode())
        assert answer.status == 400, answer
        assert "cannot unmarshal" in answer.json["message"]


def test_delete_options_merge(client: Client, namespace: str) -> None:
    where = f"/api/v1/namespaces/{namespace}/configmaps"
    client.post(where, {"metadata": {"name": "a"}})
    body = b'{"preconditions":{"uid":"x"},"preconditions":{"resourceVersion":"1"}}'
    answer = client.ask("DELETE", f"{where}/a", body)
    assert answer.status == 409, answer
    assert "the UID in the precondition (x)" in answer.json["message"]


def test_many_repeated_keys_cost_linear_time(client: Client, namespace: str) -> None:
    """A path of 500 KB, below which keys are repeated 100,000 times. A copy of the path at each step would be
    too slow."""
    where = f"/api/v1/namespaces/{namespace}/configmaps?dryRun=All"
    labels = ",".join(['"a":"b"'] * 100_000)
    for metadata in (
        f'"name":"a","labels":{{{labels}}}',
        f'"name":"a","labels":{{"{"k" * 500_000}":{{{labels}}}}}',
    ):
        answer = client.ask("POST", where, f'{{"metadata":{{{metadata}}}}}'.encode())
        assert answer.status in (201, 400), answer
    free = f'{{{KIND},"metadata":{{"name":"a"}},"{"k" * 500_000}":{{{labels}}}}}'
    assert client.ask("POST", where, free.encode()).status == 400


@pytest.mark.parametrize("member", ["op", "path"])
def test_overridden_json_patch_member_must_be_a_string(client: Client, widget: str, member: str) -> None:
    body = f'[{{"{member}":1,"op":"test","path":"/kind","value":"Widget"}}]'
    answer = client.ask("PATCH", widget, body.encode(), JSON_PATCH)
    assert answer.status == 400, answer
    assert f"cannot unmarshal number into Go struct field jsonPatchOp.{member}" in answer.json["message"]


def test_failed_apply_sends_no_warnings(client: Client, widgets: str) -> None:
    text = f"apiVersion: {GROUP}/v1\nkind: Widget\nmetadata: {{name: a}}\nspec:\n  s: b\n  s: 1\n"
    for validation in ("Warn", "Strict"):
        where = f"{widgets}/a?fieldManager=m&fieldValidation={validation}"
        answer = client.ask("PATCH", where, text.encode(), APPLY)
        assert answer.status == 500, answer
        assert "failed to create typed patch object" in answer.json["message"]
        assert warnings(answer) == []


def test_number_out_of_float_range_is_rejected_in_patches(client: Client, widget: str) -> None:
    for content_type, body in (
        (MERGE, b'{"spec":{"n":1e400}}'),
        (JSON_PATCH, b'[{"op":"add","value":1e400}]'),
    ):
        answer = client.ask("PATCH", f"{widget}?fieldValidation=Ignore", body, content_type)
        assert answer.status == 422, answer
        answer = client.ask("PATCH", widget, body, content_type)
        assert answer.status == 400, answer


@pytest.mark.parametrize("kind", ["Widget", "ConfigMap"])
def test_strict_yaml_error_lists_lines(client: Client, widgets: str, namespace: str, kind: str) -> None:
    custom = kind == "Widget"
    where = widgets if custom else f"/api/v1/namespaces/{namespace}/configmaps"
    api_version = f"{GROUP}/v1" if custom else "v1"
    text = f"apiVersion: {api_version}\nkind: {kind}\nmetadata:\n  name: a\n  name: b\n  name: c\n"
    answer = client.ask("POST", f"{where}?fieldValidation=Strict", text.encode(), "application/yaml")
    assert answer.status == 400, answer
    lines = "".join(f'\n  line {line}: key "name" already set in map' for line in (5, 6))
    assert answer.json["message"].endswith(f"strict decoding error: yaml: unmarshal errors:{lines}")
