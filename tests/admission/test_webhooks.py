"""Admission webhooks over real HTTPS: the review that is sent, and the effects of the response."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from kubist.api.webhooks.reviews import LARGE, VALUES_LIMIT
from kubist.model.meta.object import Object
from kubist.model.schema.decode import decode

from .conftest import Client, WebhookServer, configuration, json_patch, webhook

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
MUTATING, VALIDATING = "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"
PATHS = {
    MUTATING: f"{REGISTRATION}/mutatingwebhookconfigurations",
    VALIDATING: f"{REGISTRATION}/validatingwebhookconfigurations",
}


async def register(client: Client, kind: str, *webhooks: Object, name: str = "hooks") -> None:
    answer = await client.post(PATHS[kind], configuration(kind, *webhooks, name=name))
    assert answer.code == 201, answer.body


def configmap(name: str = "c", **fields: Any) -> Object:
    return {"metadata": {"name": name}, **fields}


def test_create_review_matches_the_reference(run: Callable[..., None], hook: WebhookServer) -> None:
    async def test(client: Client) -> None:
        await register(client, VALIDATING, webhook(hook, "CREATE"))
        path = f"{CONFIGMAPS}?fieldManager=me&fieldValidation=Strict"
        assert (await client.post(path, configmap(data={"a": "b"}))).code == 201
        (review,) = hook.reviews
        assert (review["kind"], review["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1")
        request = review["request"]
        obj = request.pop("object")
        assert request.pop("uid")
        assert request == {
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "requestKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "requestResource": {"group": "", "version": "v1", "resource": "configmaps"},
            "name": "c",
            "namespace": "default",
            "operation": "CREATE",
            "userInfo": {
                "username": "admin",
                "uid": "u1",
                "groups": ["system:masters", "system:authenticated"],
            },
            "oldObject": None,
            "dryRun": False,
            "options": {
                "kind": "CreateOptions",
                "apiVersion": "meta.k8s.io/v1",
                "fieldManager": "me",
                "fieldValidation": "Strict",
            },
        }
        assert obj["kind"] == "ConfigMap" and obj["data"] == {"a": "b"} and obj["metadata"]["uid"]
        assert hook.paths == ["/hook?timeout=10s"]

    run(test)


def test_update_and_delete_show_the_old_object(run: Callable[..., None], hook: WebhookServer) -> None:
    async def test(client: Client) -> None:
        await client.post(CONFIGMAPS, configmap(data={"a": "1"}))
        await register(client, VALIDATING, webhook(hook, "UPDATE", "DELETE"))
        await client.patch(f"{CONFIGMAPS}/c", {"data": {"a": "2"}})
        await client.delete(f"{CONFIGMAPS}/c?propagationPolicy=Foreground&gracePeriodSeconds=0")
        update, delete = hook.requests
        assert (update["object"]["data"], update["oldObject"]["data"]) == ({"a": "2"}, {"a": "1"})
        assert update["options"]["kind"] == "UpdateOptions"
        assert (delete["object"], delete["oldObject"]["data"]) == (None, {"a": "2"})
        assert delete["options"] == {
            "kind": "DeleteOptions",
            "apiVersion": "meta.k8s.io/v1",
            "gracePeriodSeconds": 0,
            "propagationPolicy": "Foreground",
        }

    run(test)


def test_mutating_webhook_patches(run: Callable[..., None], hook: WebhookServer) -> None:
    hook.respond = lambda request: json_patch(
        {"op": "add", "path": "/data", "value": {"added": "yes"}},
        {"op": "add", "path": "/metadata/labels", "value": {"by": request["userInfo"]["username"]}},
    )

    async def test(client: Client) -> None:
        await register(client, MUTATING, webhook(hook, "CREATE"))
        answer = await client.post(CONFIGMAPS, configmap())
        assert answer.body["data"] == {"added": "yes"}
        assert answer.body["metadata"]["labels"] == {"by": "admin"}
        assert (await client.get(f"{CONFIGMAPS}/c")).body["data"] == {"added": "yes"}
        assert "uid" not in hook.requests[0]["object"]["metadata"]

    run(test)


def test_patched_object_is_defaulted_again(run: Callable[..., None], hook: WebhookServer) -> None:
    container = {"name": "side", "image": "side:1"}
    hook.respond = lambda request: json_patch({"op": "add", "path": "/spec/containers/-", "value": container})
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}

    async def test(client: Client) -> None:
        await register(client, MUTATING, webhook(hook, rules=[rule]))
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "c:1"}]}}
        answer = await client.post("/api/v1/namespaces/default/pods", pod)
        assert answer.body["spec"]["containers"][1]["imagePullPolicy"] == "IfNotPresent"

    run(test)


def test_denial_has_the_webhooks_message(run: Callable[..., None], hook: WebhookServer) -> None:
    async def test(client: Client) -> None:
        await register(client, VALIDATING, webhook(hook, "CREATE"))
        hook.respond = lambda request: {"allowed": False}
        answer = await client.post(CONFIGMAPS, configmap())
        denied = 'admission webhook "hook.example.com" denied the request'
        assert (answer.code, answer.message) == (400, f"{denied} without explanation")
        said = {"code": 409, "message": "no", "reason": "Conflict", "details": {"causes": [{"message": "x"}]}}
        hook.respond = lambda request: {"allowed": False, "status": said}
        answer = await client.post(CONFIGMAPS, configmap())
        assert (answer.code, answer.message) == (409, f"{denied}: no")
        assert (answer.body["reason"], answer.body["details"]) == ("Conflict", {"causes": [{"message": "x"}]})

    run(test)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (b"{}", "webhook response was absent"),
        (b"nonsense", "couldn't get version/kind"),
        (b'{"response":{"uid":"other"}}', "expected response.uid="),
    ],
)
def test_invalid_response_follows_failure_policy(
    run: Callable[..., None], hook: WebhookServer, broken: bytes, says: str
) -> None:
    hook.raw = broken

    async def test(client: Client) -> None:
        await register(client, VALIDATING, webhook(hook, "CREATE"))
        answer = await client.post(CONFIGMAPS, configmap())
        assert (answer.code, answer.body["reason"]) == (500, "InternalError")
        assert says in answer.message
        await client.delete(f"{PATHS[VALIDATING]}/hooks")
        await register(client, VALIDATING, webhook(hook, "CREATE", failurePolicy="Ignore"))
        assert (await client.post(CONFIGMAPS, configmap())).code == 201

    run(test)


MISTYPED: list[tuple[Object, str]] = [
    ({"allowed": "true"}, "string into Go struct field AdmissionResponse.response.allowed of type bool"),
    ({"uid": 7}, "number into Go struct field AdmissionResponse.response.uid of type types.UID"),
    ({"status": 7}, "number into Go struct field AdmissionResponse.response.status of type v1.Status"),
    ({"status": {"code": "x"}}, "string into Go struct field Status.response.status.code of type int32"),
    ({"status": {"code": 1 << 40}}, "number 1099511627776 into Go struct field Status.response.status.code"),
    ({"status": {"message": 5}}, "number into Go struct field Status.response.status.message of type string"),
    ({"status": {"reason": []}}, "array into Go struct field Status.response.status.reason of type"),
    ({"status": {"details": 3}}, "number into Go struct field Status.response.status.details of type"),
    ({"status": {"details": {"causes": [1]}}}, "number into Go struct field StatusDetails.response.status"),
    ({"status": {"metadata": "q"}}, "string into Go struct field Status.response.status.metadata of type"),
    ({"warnings": 5}, "number into Go struct field AdmissionResponse.response.warnings of type []string"),
    ({"warnings": [1]}, "number into Go struct field AdmissionResponse.response.warnings of type string"),
    ({"auditAnnotations": [1]}, "response.auditAnnotations of type map[string]string"),
    ({"auditAnnotations": {"a": 5}}, "response.auditAnnotations of type string"),
    ({"patch": 5}, "number into Go struct field AdmissionResponse.response.patch of type []uint8"),
    ({"patch": "?", "patchType": "JSONPatch"}, "illegal base64 data at input byte 0"),
    (
        {"patchType": {}},
        "object into Go struct field AdmissionResponse.response.patchType of type v1.PatchType",
    ),
]


@pytest.mark.parametrize("kind", [MUTATING, VALIDATING])
def test_wrong_type_in_a_response_is_a_failed_call(
    run: Callable[..., None], hook: WebhookServer, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(client: Client) -> None:
        await register(client, kind, webhook(hook, "CREATE"))
        for allowed in (True, False):
            for fields, says in MISTYPED:
                hook.respond = lambda request, fields=fields, allowed=allowed: {"allowed": allowed, **fields}  # type: ignore[misc]
                answer = await client.post(CONFIGMAPS, configmap())
                assert (answer.code, answer.body["reason"]) == (500, "InternalError"), fields
                called = 'failed calling webhook "hook.example.com": failed to call webhook: '
                assert called in answer.message and says in answer.message, answer.message
        await client.delete(f"{PATHS[kind]}/hooks")
        await register(client, kind, webhook(hook, "CREATE", failurePolicy="Ignore"))
        for number, (fields, _) in enumerate(MISTYPED):
            hook.respond = lambda request, fields=fields: {"allowed": False, **fields}  # type: ignore[misc]
            assert (await client.post(CONFIGMAPS, configmap(f"c{number}"))).code == 201, fields
        assert not [record for record in caplog.records if record.exc_info]

    run(test)


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"7",
        b'"x"',
        b"\xff<html>",
        b'{"kind": 7}',
        b'{"apiVersion": []}',
        b'{"response": 7}',
        b'{"response": []}',
        b"[1," * 100_000,
        b"[" + b"[]," * VALUES_LIMIT + b"[]]",
        b"[" + b'"",' * VALUES_LIMIT + b'""]',
        b'{"response":' + b"[" * 1000 + b"]" * 1000 + b"}",
        b'{"response":{"uid":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}}",
    ],
)
def test_response_that_is_no_review_is_a_failed_call(
    run: Callable[..., None], hook: WebhookServer, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    hook.raw = body

    async def test(client: Client) -> None:
        for kind in (MUTATING, VALIDATING):
            await register(client, kind, webhook(hook, "CREATE"))
            answer = await client.post(CONFIGMAPS, configmap())
            assert (answer.code, answer.body["reason"]) == (500, "InternalError")
            assert 'failed calling webhook "hook.example.com": failed to call webhook: ' in answer.message
            await client.delete(f"{PATHS[kind]}/hooks")
            await register(client, kind, webhook(hook, "CREATE", failurePolicy="Ignore"))
            assert (await client.post(CONFIGMAPS, configmap(kind.lower()))).code == 201
            await client.delete(f"{PATHS[kind]}/hooks")
        assert not [record for record in caplog.records if record.exc_info]

    run(test)


def test_denial_has_a_status_code_that_http_can_express(
    run: Callable[..., None], hook: WebhookServer
) -> None:
    codes = [(0, 400), (-5, 400), (101, 400), (200, 400), (399, 400), (400, 400), (503, 503), (999, 999)]
    codes += [(1000, 500), (99999, 500), ((1 << 31) - 1, 500)]

    async def test(client: Client) -> None:
        await register(client, VALIDATING, webhook(hook, "CREATE"))
        for sent, expected in codes:
            hook.respond = lambda request, sent=sent: {"allowed": False, "status": {"code": sent}}  # type: ignore[misc]
            answer = await client.post(CONFIGMAPS, configmap())
            assert (answer.code, answer.body["code"]) == (expected, expected), sent
            assert answer.message.endswith("denied the request without explanation")

    run(test)


def test_null_in_a_response_is_an_absent_field(run: Callable[..., None], hook: WebhookServer) -> None:
    nothing = dict.fromkeys(("status", "patch", "patchType", "auditAnnotations", "warnings"))

    async def test(client: Client) -> None:
        await register(client, MUTATING, webhook(hook, "CREATE"))
        hook.respond = lambda request: {"allowed": True, **nothing}
        assert (await client.post(CONFIGMAPS, configmap())).code == 201
        hook.respond = lambda request: {"allowed": None}
        assert (await client.post(CONFIGMAPS, configmap("d"))).code == 400

    run(test)


def test_patch_with_too_many_values_is_undecodable(run: Callable[..., None], hook: WebhookServer) -> None:
    patch = base64.b64encode(b"[" + b"[]," * VALUES_LIMIT + b"[]]").decode()
    hook.respond = lambda request: {"allowed": True, "patchType": "JSONPatch", "patch": patch}

    async def test(client: Client) -> None:
        await register(client, MUTATING, webhook(hook, "CREATE"))
        answer = await client.post(CONFIGMAPS, configmap())
        assert answer.code == 500
        assert (
            f"undecodable patch in webhook response: the JSON has more than {VALUES_LIMIT}" in answer.message
        )

    run(test)


@pytest.mark.parametrize("kind", [MUTATING, VALIDATING])
def test_large_response_is_decoded_in_the_worker(
    run: Callable[..., None], hook: WebhookServer, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[bool] = []

    def noted(schema: Any, value: Any) -> Any:
        threads.append(threading.current_thread() is threading.main_thread())
        return decode(schema, value)

    monkeypatch.setattr("kubist.api.webhooks.reviews.decode", noted)

    async def test(client: Client) -> None:
        await register(client, kind, webhook(hook, "CREATE"))
        for size in (1, LARGE):
            hook.respond = lambda request, size=size: {"allowed": True, "auditAnnotations": {"a": "x" * size}}  # type: ignore[misc]
            assert (await client.post(CONFIGMAPS, configmap(f"c{size}"))).code == 201
        assert threads == [True, False]

    run(test)


def test_unreachable_slow_and_untrusted_servers_fail(run: Callable[..., None], hook: WebhookServer) -> None:
    def slow(request: Object) -> Object:
        time.sleep(1.5)
        return {"allowed": True}

    async def test(client: Client) -> None:
        hook.respond = slow
        await register(client, VALIDATING, webhook(hook, "CREATE", timeoutSeconds=1))
        answer = await client.post(CONFIGMAPS, configmap())
        assert answer.code == 500 and "context deadline exceeded" in answer.message
        await client.delete(f"{PATHS[VALIDATING]}/hooks")
        distrusted = {"url": hook.client_config()["url"]}
        await register(client, VALIDATING, webhook(hook, "CREATE", clientConfig=distrusted))
        answer = await client.post(CONFIGMAPS, configmap())
        assert answer.code == 500 and "tls: failed to verify certificate" in answer.message

    run(test)


def test_dry_run_requires_webhook_without_side_effects(run: Callable[..., None], hook: WebhookServer) -> None:
    async def test(client: Client) -> None:
        await register(client, VALIDATING, webhook(hook, "CREATE", sideEffects="NoneOnDryRun"))
        assert (await client.post(f"{CONFIGMAPS}?dryRun=All", configmap())).code == 201
        assert hook.requests[0]["dryRun"] is True
        assert hook.requests[0]["options"]["dryRun"] == ["All"]
        assert (await client.get(f"{CONFIGMAPS}/c")).code == 404

    run(test)


def test_warnings_reach_the_client(run: Callable[..., None], hook: WebhookServer) -> None:
    hook.respond = lambda request: {"allowed": True, "warnings": ["mind the gap"]}

    async def test(client: Client) -> None:
        await register(client, VALIDATING, webhook(hook, "CREATE"))
        assert (await client.post(CONFIGMAPS, configmap())).warnings == ['299 - "mind the gap"']

    run(test)


def test_selectors_match_namespaces_and_objects(run: Callable[..., None], hook: WebhookServer) -> None:
    async def test(client: Client) -> None:
        chosen = {
            "namespaceSelector": {"matchLabels": {"watched": "yes"}},
            "objectSelector": {"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]},
        }
        await register(client, VALIDATING, webhook(hook, "CREATE", **chosen))
        await client.post("/api/v1/namespaces", {"metadata": {"name": "w", "labels": {"watched": "yes"}}})
        await client.post(CONFIGMAPS, configmap("elsewhere"))
        await client.post("/api/v1/namespaces/w/configmaps", configmap("seen"))
        await client.post(
            "/api/v1/namespaces/w/configmaps", {"metadata": {"name": "s", "labels": {"skip": ""}}}
        )
        assert [request["name"] for request in hook.requests] == ["seen"]

    run(test)


def test_equivalent_rule_gets_its_own_version(run: Callable[..., None], hook: WebhookServer) -> None:
    rule = {
        "apiGroups": ["autoscaling"],
        "apiVersions": ["v1"],
        "resources": ["horizontalpodautoscalers"],
        "operations": ["CREATE"],
    }
    hook.respond = lambda request: json_patch({"op": "replace", "path": "/spec/maxReplicas", "value": 7})

    async def test(client: Client) -> None:
        await register(client, MUTATING, webhook(hook, rules=[rule]))
        exact = webhook(hook, rules=[rule], matchPolicy="Exact", name="exact.example.com")
        await register(client, MUTATING, exact, name="never")
        target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
        scaler = {"metadata": {"name": "h"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3}}
        path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
        answer = await client.post(path, scaler)
        (request,) = hook.requests
        assert request["kind"]["version"] == request["resource"]["version"] == "v1"
        assert request["requestKind"]["version"] == request["requestResource"]["version"] == "v2"
        assert request["object"]["apiVersion"] == "autoscaling/v1"
        assert (answer.body["apiVersion"], answer.body["spec"]["maxReplicas"]) == ("autoscaling/v2", 7)

    run(test)


def test_webhook_is_reinvoked_after_a_later_change(run: Callable[..., None], hook: WebhookServer) -> None:
    def respond(request: Object) -> Object:
        data = request["object"].get("data") or {}
        if request["object"]["metadata"]["name"] == "c" and "late" not in data and len(hook.requests) == 2:
            return json_patch({"op": "add", "path": "/data", "value": {"late": "1"}})
        return {"allowed": True}

    hook.respond = respond

    async def test(client: Client) -> None:
        first = webhook(hook, "CREATE", name="first.example.com", reinvocationPolicy="IfNeeded")
        second = webhook(hook, "CREATE", name="second.example.com")
        await register(client, MUTATING, first, second)
        assert (await client.post(CONFIGMAPS, configmap())).body["data"] == {"late": "1"}
        seen = [(request["object"].get("data") or {}) for request in hook.requests]
        assert seen == [{}, {}, {"late": "1"}]

    run(test)


def test_subresource_is_matched_by_name(run: Callable[..., None], hook: WebhookServer) -> None:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/scale"], "operations": ["UPDATE"]}

    async def test(client: Client) -> None:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        path = "/apis/apps/v1/namespaces/default/deployments"
        await client.post(path, {"metadata": {"name": "d"}, "spec": spec})
        await register(client, VALIDATING, webhook(hook, rules=[rule]))
        await client.patch(f"{path}/d", {"metadata": {"labels": {"x": "y"}}})
        assert (await client.patch(f"{path}/d/scale", {"spec": {"replicas": 3}})).code == 200
        (request,) = hook.requests
        assert request["subResource"] == request["requestSubResource"] == "scale"
        assert request["kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        assert request["object"]["spec"] == {"replicas": 3}

    run(test)


def test_webhook_configurations_are_exempt(run: Callable[..., None], hook: WebhookServer) -> None:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}
    hook.respond = lambda request: {"allowed": False}

    async def test(client: Client) -> None:
        await register(client, VALIDATING, webhook(hook, rules=[rule]))
        assert (await client.post(CONFIGMAPS, configmap())).code == 400
        assert (await client.delete(f"{PATHS[VALIDATING]}/hooks")).code == 200
        assert (await client.post(CONFIGMAPS, configmap())).code == 201

    run(test)


def test_service_is_reached_at_its_endpoints(run: Callable[..., None], hook: WebhookServer) -> None:
    async def test(client: Client) -> None:
        await client.post(
            "/api/v1/namespaces/default/services",
            {"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 443}]}},
        )
        endpoints = {
            "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
            "addressType": "IPv4",
            "ports": [{"name": "", "port": hook.port}],
            "endpoints": [{"addresses": ["127.0.0.1"]}],
        }
        path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
        # Endpoints must not have loopback addresses, so an ExternalName service points to this machine.
        assert (await client.post(path, endpoints)).code == 422
        external = {
            "metadata": {"name": "hook"},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        }
        await client.delete("/api/v1/namespaces/default/services/hook")
        await client.post("/api/v1/namespaces/default/services", external)
        service = {"name": "hook", "namespace": "default", "path": "/in", "port": hook.port}
        config = {"service": service, "caBundle": hook.ca_bundle}
        await register(client, VALIDATING, webhook(hook, "CREATE", clientConfig=config))
        assert (await client.post(CONFIGMAPS, configmap())).code == 201
        assert hook.paths == ["/in?timeout=10s"]

    run(test)
