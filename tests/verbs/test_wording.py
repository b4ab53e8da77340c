"""Messages of refused requests: word for word those of the reference."""

from __future__ import annotations

import base64

import pytest

from tests.live import Client

HERE = "/api/v1/namespaces/default/configmaps"
LEGACY = "pkg/api/legacyscheme/scheme.go:30"
APPLY = "application/apply-patch+yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"


def _kind(kind: str, version: str = "v1") -> bytes:
    return f'{{"apiVersion":"{version}","kind":"{kind}"}}'.encode()


@pytest.mark.parametrize(
    ("where", "body", "message"),
    [
        (
            HERE,
            _kind("Secret"),
            'Secret in version "v1" cannot be handled as a ConfigMap: '
            "converting (v1.Secret) to (core.ConfigMap): unknown conversion",
        ),
        (
            HERE,
            b'{"apiVersion":"v1","kind":"Secret","metadata":""}',
            'Secret in version "v1" cannot be handled as a ConfigMap: '
            "json: cannot unmarshal string into Go struct field Secret.metadata of type v1.ObjectMeta",
        ),
        (
            HERE,
            _kind("DeleteOptions", "apps/v1"),
            'DeleteOptions in version "v1" cannot be handled as a ConfigMap: '
            "converting (v1.DeleteOptions) to (core.ConfigMap): unknown conversion",
        ),
        (
            HERE,
            _kind("Status", "nowhere/v7"),
            'Status in version "v7" cannot be handled as a ConfigMap: '
            "converting (v1.Status) to (core.ConfigMap): unknown conversion",
        ),
        (
            HERE,
            _kind("Scale", "apps/v1beta1"),
            'Scale in version "v1beta1" cannot be handled as a ConfigMap: '
            "converting (v1beta1.Scale) to (core.ConfigMap): unknown conversion",
        ),
        (
            HERE,
            _kind("APIService", "apiregistration.k8s.io/v1"),
            'APIService in version "v1" cannot be handled as a ConfigMap: no kind "APIService" is registered '
            f'for version "apiregistration.k8s.io/v1" in scheme "{LEGACY}"',
        ),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            _kind("Deployment", "extensions/v1beta1"),
            "the API version in the data (extensions/v1beta1) does not match the expected API version (apps/v1)",
        ),
        (
            HERE,
            _kind("ConfigMap", "apps/__internal"),
            'ConfigMap in version "__internal" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered '
            f'for the internal version of group "apps" in scheme "{LEGACY}"',
        ),
        (
            HERE,
            _kind("ConfigMap", "apps/"),
            'ConfigMap in version "" cannot be handled as a ConfigMap: '
            """Object 'apiVersion' is missing in '{"apiVersion":"apps/","kind":"ConfigMap"}'""",
        ),
        (
            HERE,
            _kind("ConfigMap", "a/b/c"),
            "the object provided is unrecognized (must be of type ConfigMap): "
            'unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c","kind":" ...)',
        ),
    ],
)
def test_body_of_another_kind(client: Client, where: str, body: bytes, message: str) -> None:
    answer = client.ask("POST", where, body)
    assert (answer.status, answer.json["message"]) == (400, message)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"k8s\0", "the object provided is unrecognized (must be of type ConfigMap): empty body (6b387300)"),
        (
            b"none",
            "the object provided is unrecognized (must be of type ConfigMap): provided data does not appear "
            "to be a protobuf message, expected prefix [107 56 115 0] (6e6f6e65)",
        ),
        (
            b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x02\x08\x01",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
            "proto: wrong wireType = 0 for field ObjectMeta",
        ),
    ],
)
def test_malformed_protobuf_is_rejected(client: Client, body: bytes, message: str) -> None:
    answer = client.ask("POST", HERE, body, PROTOBUF)
    assert (answer.status, answer.json["message"]) == (400, message)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (_kind("Table", "meta.k8s.io/v1"), "converting (v1.Table) to (v1.DeleteOptions): unknown conversion"),
        (_kind("Status"), "converting (v1.Status) to (v1.DeleteOptions): unknown conversion"),
        (
            b'{"kind":"Bar"}',
            'no kind "Bar" is registered for version "meta.k8s.io/v1" in scheme '
            '"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"',
        ),
    ],
)
def test_delete_options_of_another_kind(client: Client, kind: bytes, message: str) -> None:
    answer = client.ask("DELETE", f"{HERE}/none", kind)
    assert (answer.status, answer.json["message"]) == (400, message)


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("!!!", "illegal base64 data at input byte 0"),
        ("abcde", "illegal base64 data at input byte 4"),
        ("ab=", "illegal base64 data at input byte 2"),
        ("abc", "invalid character 'i' looking for beginning of value"),
        (b"[]", "json: cannot unmarshal array into Go value of type storage.continueToken"),
        (b'{"v":1}', "json: cannot unmarshal number into Go struct field continueToken.v of type string"),
        (b'{"rv":"1"}', "json: cannot unmarshal string into Go struct field continueToken.rv of type int64"),
        (b"{}", "server does not recognize this encoded version "),
    ],
)
def test_malformed_continue_token_is_rejected(client: Client, token: str | bytes, why: str) -> None:
    if isinstance(token, bytes):
        token = base64.urlsafe_b64encode(token).rstrip(b"=").decode()
    answer = client.ask("GET", f"{HERE}?continue={token}")
    message = f"invalid continue token: continue key is not valid: {why}"
    assert (answer.status, answer.json["message"]) == (400, message)


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (_kind("Secret"), 400, "invalid object type: /v1, Kind=Secret"),
        (_kind("ConfigMap", "a/b/c"), 400, "invalid object type: /, Kind="),
        (b"null", 400, "invalid object type: /, Kind="),
        (
            b"[1]",
            400,
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: "
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            b"{[a]: 1}",
            400,
            'error decoding YAML: error converting YAML to JSON: yaml: invalid map key: []interface {}{"a"}',
        ),
        (
            b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"binaryData":{"a":"!"}}',
            500,
            "failed to convert new object (/x; /v1, Kind=ConfigMap) to proper version: unable to convert "
            "unstructured object to /v1, Kind=ConfigMap: error decoding from json: "
            "illegal base64 data at input byte 0",
        ),
    ],
)
def test_malformed_configuration_is_rejected(client: Client, body: bytes, status: int, message: str) -> None:
    answer = client.ask("PATCH", f"{HERE}/x?fieldManager=a", body, APPLY)
    assert (answer.status, answer.json["message"]) == (status, message)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (f"{HERE}?limit=x&labelSelector=a%20in", 'strconv.ParseInt: parsing "x": invalid syntax'),
        (f"{HERE}/..", "Name parameter invalid: \"..\": may not be '..'"),
    ],
)
def test_malformed_request_is_rejected(client: Client, path: str, message: str) -> None:
    answer = client.ask("GET", path)
    assert (answer.status, answer.json["message"]) == (400, message)


def test_update_without_a_name(client: Client) -> None:
    answer = client.ask("PUT", f"{HERE}/x", b"{}")
    message = "the name of the object (x based on URL) was undeterminable: name must be provided"
    assert (answer.status, answer.json["message"]) == (400, message)


def test_patch_of_an_unknown_type(client: Client) -> None:
    answer = client.ask("PATCH", f"{HERE}/x", b"{}", "text/plain")
    assert (answer.status, answer.json["message"]) == (415, "415: Unsupported Media Type")


@pytest.mark.parametrize(
    ("where", "given"), [(HERE, "/v1"), ("/apis/apps/v1/namespaces/default/deployments", "apps/")]
)
def test_apiversion_with_an_empty_part(client: Client, where: str, given: str) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template} if "apps" in where else None
    obj = {"apiVersion": given, "metadata": {"name": "partly"}} | ({"spec": spec} if spec else {})
    answer = client.ask("POST", f"{where}?dryRun=All", obj)
    assert answer.status == 201, answer


def test_delete_options_of_another_group_need_a_version(client: Client) -> None:
    answer = client.ask("DELETE", f"{HERE}/none", b'{"apiVersion":"apps/"}')
    assert (answer.status, answer.json["message"]) == (
        400,
        """Object 'apiVersion' is missing in '{"apiVersion":"apps/"}'""",
    )


def test_unsupported_content_type_is_reported_before_options(client: Client) -> None:
    assert client.ask("POST", f"{HERE}?dryRun=x", b"{}", "text/plain").status == 415
    assert client.ask("PUT", f"{HERE}/none?dryRun=x", b"{}", "text/plain").status == 422


def test_strategic_merge_of_raw_json(client: Client, namespace: str) -> None:
    where = f"/apis/apps/v1/namespaces/{namespace}/controllerrevisions"
    client.post(where, {"metadata": {"name": "r"}, "data": {"spec": {}}, "revision": 1})
    patch = {"data": {"spec": {"a": 1}}}
    answer = client.ask("PATCH", f"{where}/r", patch, "application/strategic-merge-patch+json")
    message = 'unable to find api field in struct RawExtension for the json field "spec"'
    assert (answer.status, answer.json["message"]) == (500, message)


@pytest.mark.parametrize(
    ("resource", "obj", "shown"),
    [
        (
            "/apis/apps/v1/namespaces/{}/deployments",
            {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {}}}}},
            "spec.template.metadata.labels: Invalid value: {}: `selector` does not match template `labels`",
        ),
        (
            "/api/v1/persistentvolumes",
            {"spec": {"capacity": {}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}},
            'spec.capacity: Unsupported value: {}: supported values: "storage"',
        ),
        (
            "/apis/networking.k8s.io/v1/namespaces/{}/ingresses",
            {"spec": {"rules": []}},
            "spec: Invalid value: []: either `defaultBackend` or `rules` must be specified",
        ),
    ],
)
def test_errors_show_fields_that_were_sent_empty(
    client: Client, namespace: str, resource: str, obj: dict[str, object], shown: str
) -> None:
    answer = client.ask("POST", resource.format(namespace), {"metadata": {"name": "x"}, **obj})
    assert answer.status == 422
    assert shown in answer.json["message"]


def test_immutable_specs_show_fields_that_were_sent_empty(client: Client, namespace: str) -> None:
    claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    client.post(claims, {"metadata": {"name": "c"}, "spec": spec})
    changed = {"metadata": {"name": "c"}, "spec": {**spec, "accessModes": []}}
    answer = client.ask("PUT", f"{claims}/c", changed)
    assert answer.status == 422
    assert '+ "AccessModes": [],' in answer.json["message"]


def test_reviews_show_metadata_in_declared_order(client: Client, namespace: str) -> None:
    where = f"/apis/authorization.k8s.io/v1/namespaces/{namespace}/localsubjectaccessreviews"
    spec = {"user": "u", "resourceAttributes": {"namespace": namespace, "verb": "get", "resource": "pods"}}
    answer = client.ask("POST", where, {"metadata": {"labels": {"a": "b"}}, "spec": spec})
    assert answer.status == 422
    assert (
        f'metadata: Invalid value: {{"namespace":"{namespace}","labels":{{"a":"b"}},'
        in answer.json["message"]
    )


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"\x12\x00", "converting (v1.Pod) to (core.ConfigMap): unknown conversion"),
        (b"\x13", "proto: wrong wireType = 3 for field Spec"),
    ],
)
def test_protobuf_of_another_kind_is_read_first(client: Client, raw: bytes, why: str) -> None:
    meta = b"\x0a\x02v1\x12\x03Pod"
    body = b"k8s\0" + b"\x0a" + bytes([len(meta)]) + meta + b"\x12" + bytes([len(raw)]) + raw
    answer = client.ask("POST", HERE, body, PROTOBUF)
    message = f'Pod in version "v1" cannot be handled as a ConfigMap: {why}'
    assert (answer.status, answer.json["message"]) == (400, message)


def test_selectors_are_shown_without_empty_parts(client: Client, namespace: str) -> None:
    where = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    spec = {"selector": {"matchLabels": {}}, "template": {"metadata": {"labels": {"a": "b"}}}}
    answer = client.ask("POST", where, {"metadata": {"name": "d"}, "spec": spec})
    assert answer.status == 422
    assert (
        "spec.selector: Invalid value: {}: empty selector is invalid for deployment" in answer.json["message"]
    )


def test_precondition_of_an_event_names_no_group(client: Client, namespace: str) -> None:
    events = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    event = {
        "metadata": {"name": "e"},
        "eventTime": "2024-05-01T10:00:00.000000Z",
        "regarding": {"kind": "Pod", "name": "p", "namespace": namespace},
        "reportingController": "example.com/c",
        "reportingInstance": "i",
        "action": "A",
        "reason": "R",
        "type": "Normal",
    }
    client.post(events, event)
    answer = client.ask("DELETE", f"{events}/e", {"preconditions": {"uid": "x"}})
    assert answer.status == 409
    assert answer.json["message"].startswith('Operation cannot be fulfilled on Event "e": the UID')


def test_dry_run_shows_keys_without_prefix(client: Client) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    client.post(roles, {"metadata": {"name": "worded"}})
    changed = {"metadata": {"name": "worded", "uid": "x"}}
    for query, key in (("", "/registry/clusterroles/worded"), ("?dryRun=All", "/clusterroles/worded")):
        answer = client.ask("PUT", f"{roles}/worded{query}", changed)
        assert answer.status == 409
        assert f"Code: 4, Key: {key}," in answer.json["message"]
    client.delete(f"{roles}/worded")


def test_empty_certificate_request_is_shown_as_text(client: Client) -> None:
    spec = {"signerName": "example.com/s", "usages": ["client auth"], "request": ""}
    where = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    answer = client.ask("POST", where, {"metadata": {"name": "worded"}, "spec": spec})
    assert answer.status == 422
    assert 'spec.request: Invalid value: "": PEM block type' in answer.json["message"]
