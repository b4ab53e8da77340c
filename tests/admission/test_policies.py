"""Validating and mutating policies: bindings, parameters, variables, messages, actions and failures."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from kubist.model.meta.object import Object

from .conftest import Client, WebhookServer, configuration, webhook

Run = Callable[..., None]
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def rules(*resources: str, operations: tuple[str, ...] = ("CREATE", "UPDATE"), group: str = "") -> Object:
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "resources": list(resources)}
    return {"resourceRules": [{**rule, "operations": list(operations)}]}


async def policy(client: Client, name: str = "p", *, binding: Object | None = None, **spec: Any) -> None:
    """Creates a validating policy for configmaps, with a binding that denies."""
    body = {"metadata": {"name": name}, "spec": {"matchConstraints": rules("configmaps"), **spec}}
    answer = await client.post(f"{REGISTRATION}/validatingadmissionpolicies", body)
    assert answer.code == 201, answer.body
    bound = {"policyName": name, "validationActions": ["Deny"], **(binding or {})}
    path = f"{REGISTRATION}/validatingadmissionpolicybindings"
    answer = await client.post(path, {"metadata": {"name": f"{name}-b"}, "spec": bound})
    assert answer.code == 201, answer.body


async def mutation(client: Client, *mutations: Object, name: str = "m", **spec: Any) -> None:
    body = {
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": rules("configmaps"),
            "reinvocationPolicy": "Never",
            "mutations": list(mutations),
            **spec,
        },
    }
    answer = await client.post(f"{REGISTRATION}/mutatingadmissionpolicies", body)
    assert answer.code == 201, answer.body
    path = f"{REGISTRATION}/mutatingadmissionpolicybindings"
    await client.post(path, {"metadata": {"name": f"{name}-b"}, "spec": {"policyName": name}})


def apply(expression: str) -> Object:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patch(expression: str) -> Object:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def configmap(name: str = "c", labels: Object | None = None, **data: str) -> Object:
    return {"metadata": {"name": name, "labels": labels or {}}, "data": data}


@pytest.mark.parametrize(
    ("validation", "code", "reason", "message"),
    [
        ({"expression": "has(object.data)"}, 422, "Invalid", "failed expression: has(object.data)"),
        ({"expression": "false", "message": " no  "}, 422, "Invalid", "no"),
        ({"expression": "false", "message": "no", "reason": "Forbidden"}, 403, "Forbidden", "no"),
        (
            {"expression": "false", "reason": "RequestEntityTooLarge", "message": "big"},
            413,
            "RequestEntityTooLarge",
            "big",
        ),
        (
            {"expression": "false", "messageExpression": "'no ' + object.metadata.name"},
            422,
            "Invalid",
            "no c",
        ),
        (
            {"expression": "false", "message": "plain", "messageExpression": "string(object.none)"},
            422,
            "Invalid",
            "plain",
        ),
        (
            {"expression": "object.none == 1"},
            422,
            "Invalid",
            "expression 'object.none == 1' resulted in error: no such key: none",
        ),
    ],
)
def test_failed_validation_denies_request(
    run: Run, validation: Object, code: int, reason: str, message: str
) -> None:
    async def test(client: Client) -> None:
        await policy(client, validations=[validation])
        answer = await client.post(CONFIGMAPS, configmap())
        assert (answer.code, answer.body["reason"]) == (code, reason)
        said = f"ValidatingAdmissionPolicy 'p' with binding 'p-b' denied request: {message}"
        assert answer.body["details"] == {"name": "c", "kind": "configmaps", "causes": [{"message": said}]}
        assert answer.message == f'configmaps "c" is forbidden: {said}'

    run(test)


def test_policy_takes_effect_and_ends_immediately(run: Run) -> None:
    async def test(client: Client) -> None:
        await policy(client, validations=[{"expression": "false"}])
        tries = itertools.count()
        while (await client.post(CONFIGMAPS, configmap())).code == 201:
            await client.delete(f"{CONFIGMAPS}/c")
            assert next(tries) < 20
        await client.delete(f"{REGISTRATION}/validatingadmissionpolicybindings/p-b")
        while (await client.post(CONFIGMAPS, configmap())).code != 201:
            assert next(tries) < 40

    run(test)


def test_match_conditions_variables_and_request_are_evaluated(run: Run) -> None:
    async def test(client: Client) -> None:
        await policy(
            client,
            matchConditions=[{"name": "not-exempt", "expression": "!('exempt' in object.metadata.labels)"}],
            variables=[
                {"name": "data", "expression": "object.?data.orValue({})"},
                {"name": "keys", "expression": "size(variables.data)"},
            ],
            validations=[
                {
                    "expression": "variables.keys < 2 || request.userInfo.username == 'nobody'",
                    "messageExpression": "request.operation + ' ' + string(variables.keys) + ' keys in '"
                    " + namespaceObject.metadata.name + (oldObject == null ? '' : ' again')",
                }
            ],
        )
        assert (await client.post(CONFIGMAPS, configmap("few", {"x": ""}, a="1"))).code == 201
        answer = await client.post(CONFIGMAPS, configmap("many", {"x": ""}, a="1", b="2"))
        assert answer.message.endswith("denied request: CREATE 2 keys in default")
        assert (await client.post(CONFIGMAPS, configmap("free", {"exempt": ""}, a="1", b="2"))).code == 201
        answer = await client.patch(f"{CONFIGMAPS}/few", {"data": {"b": "2"}})
        assert answer.message.endswith("denied request: UPDATE 2 keys in default again")

    run(test)


def test_warn_and_audit_actions_allow_the_request(run: Run) -> None:
    async def test(client: Client) -> None:
        binding = {"validationActions": ["Warn", "Audit"]}
        await policy(client, binding=binding, validations=[{"expression": "false", "message": "frowned on"}])
        answer = await client.post(CONFIGMAPS, configmap())
        assert answer.code == 201
        said = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p-b': frowned on"
        assert answer.warnings == [f'299 - "{said}"']

    run(test)


def test_parameters_are_found_by_name_and_by_label(run: Run) -> None:
    async def test(client: Client) -> None:
        params = "/api/v1/namespaces/kube-system/configmaps"
        kind = {"apiVersion": "v1", "kind": "ConfigMap"}
        reference = {
            "namespace": "kube-system",
            "selector": {"matchLabels": {"limit": "yes"}},
            "parameterNotFoundAction": "Deny",
        }
        await policy(
            client,
            binding={"paramRef": reference},
            matchConstraints=rules("secrets"),
            paramKind=kind,
            validations=[
                {
                    "expression": "object.metadata.name.size() <= int(params.data.longest)",
                    "messageExpression": "'longer than ' + params.metadata.name",
                }
            ],
        )
        secrets = "/api/v1/namespaces/default/secrets"
        answer = await client.post(secrets, {"metadata": {"name": "s"}})
        assert "no params found for policy binding with `Deny` parameterNotFoundAction" in answer.message
        for name, longest in (("wide", "9"), ("narrow", "3")):
            await client.post(params, configmap(name, {"limit": "yes"}, longest=longest))
        answer = await client.post(secrets, {"metadata": {"name": "lengthy"}})
        assert answer.message.endswith("longer than narrow")
        assert (await client.post(secrets, {"metadata": {"name": "s"}})).code == 201

    run(test)


def test_unknown_param_kind_follows_failure_policy(run: Run) -> None:
    async def test(client: Client) -> None:
        kind = {"apiVersion": "example.com/v1", "kind": "Nope"}
        spec: Object = {"paramKind": kind, "validations": [{"expression": "true"}]}
        await policy(client, "ignoring", failurePolicy="Ignore", **spec)
        assert (await client.post(CONFIGMAPS, configmap("a"))).code == 201
        await policy(client, "failing", **spec)
        answer = await client.post(CONFIGMAPS, configmap("b"))
        why = "failed to find resource referenced by paramKind: 'example.com/v1, Kind=Nope'"
        assert answer.code == 422 and answer.message.endswith(f"failed to configure policy: {why}")

    run(test)


def test_authorizer_checks_the_requesting_user(run: Run) -> None:
    async def test(client: Client) -> None:
        check = "authorizer.group('').resource('secrets').namespace('default').check('delete')"
        await policy(client, validations=[{"expression": f"{check}.allowed()", "message": "powerless"}])
        assert (await client.post(CONFIGMAPS, configmap("a"))).code == 201
        for path, body in (
            ("clusterroles", {"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]}),
            (
                "clusterrolebindings",
                {
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "c"},
                    "subjects": [{"kind": "User", "name": "dev", "apiGroup": "rbac.authorization.k8s.io"}],
                },
            ),
        ):
            await client.post(
                f"/apis/rbac.authorization.k8s.io/v1/{path}", {"metadata": {"name": "c"}, **body}
            )
        answer = await client.as_("dev-token").post(CONFIGMAPS, configmap("b"))
        assert answer.code == 422 and answer.message.endswith("powerless")

    run(test, authorization_mode=("RBAC",))


def test_expensive_expression_is_stopped(run: Run) -> None:
    async def test(client: Client) -> None:
        nested = "[1,2,3,4,5,6,7,8,9,10]"
        loop = f"{nested}.all(x, " * 6 + "true" + ")" * 6
        await policy(client, validations=[{"expression": loop}])
        answer = await client.post(CONFIGMAPS, configmap())
        assert answer.code == 422 and "cost limit exceeded" in answer.message

    run(test)


def test_excluded_and_named_resources(run: Run) -> None:
    async def test(client: Client) -> None:
        match = rules("configmaps", "secrets")
        match["excludeResourceRules"] = rules("secrets")["resourceRules"]
        match["resourceRules"][0]["resourceNames"] = ["watched"]
        await policy(client, matchConstraints=match, validations=[{"expression": "false"}])
        assert (await client.post(CONFIGMAPS, configmap("watched"))).code == 422
        assert (await client.post(CONFIGMAPS, configmap("other"))).code == 201
        secrets = "/api/v1/namespaces/default/secrets"
        assert (await client.post(secrets, {"metadata": {"name": "watched"}})).code == 201

    run(test)


def test_delete_is_validated_with_old_object(run: Run) -> None:
    async def test(client: Client) -> None:
        await client.post(CONFIGMAPS, configmap("kept", {"keep": "yes"}))
        await policy(
            client,
            matchConstraints=rules("configmaps", operations=("DELETE",)),
            validations=[{"expression": "oldObject.metadata.labels.keep != 'yes'", "message": "kept"}],
        )
        answer = await client.delete(f"{CONFIGMAPS}/kept")
        assert (answer.code, answer.body["details"]["name"]) == (422, "kept")
        answer = await client.delete(CONFIGMAPS)
        assert (answer.code, answer.body["details"]["name"]) == (422, "Unknown")

    run(test)


def test_mutations_are_applied_in_order(run: Run) -> None:
    async def test(client: Client) -> None:
        await mutation(
            client,
            apply("Object{metadata: Object.metadata{labels: Object.metadata.labels{by: request.operation}}}"),
            patch("[JSONPatch{op: 'add', path: '/data', value: {'seen': object.metadata.labels.by}}]"),
        )
        answer = await client.post(CONFIGMAPS, configmap(labels={"own": "1"}))
        assert answer.body["metadata"]["labels"] == {"own": "1", "by": "CREATE"}
        assert answer.body["data"] == {"seen": "CREATE"}

    run(test)


def test_failed_patch_test_is_skipped_and_invalid_patch_denies(run: Run) -> None:
    async def test(client: Client) -> None:
        tested = (
            "[JSONPatch{op: 'test', path: '/data/a', value: 'x'}, JSONPatch{op: 'remove', path: '/data'}]"
        )
        await mutation(client, patch(tested))
        assert (await client.post(CONFIGMAPS, configmap("t", a="y"))).body["data"] == {"a": "y"}
        await mutation(client, patch("[JSONPatch{op: 'remove', path: '/data/none'}]"), name="broken")
        answer = await client.post(CONFIGMAPS, configmap("b", a="y"))
        assert (answer.code, answer.body["reason"]) == (403, "Invalid")
        assert answer.message.startswith(
            "policy 'broken' with binding 'broken-b' denied request: JSON Patch: "
        )

    run(test)


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        (
            "Object{spec: Object.spec{template: Object.spec.wrong{}}}",
            'type mismatch: unexpected type name "Object.spec.wrong", expected "Object.spec.template"',
        ),
        (
            "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{"
            "tolerations: [Object.spec.template.spec.tolerations{key: 'a'}]}}}}",
            "may not mutate atomic arrays, maps or structs: .spec.template.spec.tolerations",
        ),
        ("Object{spec: Object.spec{replicas: 'x'}}", "failed to convert patch object to typed object"),
    ],
)
def test_invalid_apply_configuration_denies(run: Run, expression: str, why: str) -> None:
    async def test(client: Client) -> None:
        await mutation(client, apply(expression), matchConstraints=rules("deployments", group="apps"))
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        path = "/apis/apps/v1/namespaces/default/deployments"
        answer = await client.post(path, {"metadata": {"name": "d"}, "spec": spec})
        assert answer.code == 403 and why in answer.message

    run(test)


def test_mutation_is_defaulted_and_validated(run: Run) -> None:
    async def test(client: Client) -> None:
        added = "Object.spec.initContainers{name: 'side', image: 'i', restartPolicy: 'Always'}"
        await mutation(
            client,
            apply(f"Object{{spec: Object.spec{{initContainers: [{added}]}}}}"),
            matchConstraints=rules("pods", operations=("CREATE",)),
        )
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        answer = await client.post("/api/v1/namespaces/default/pods", pod)
        assert answer.body["spec"]["initContainers"][0]["imagePullPolicy"] == "Always"

    run(test)


def test_webhook_is_called_only_if_match_conditions_are_true(run: Run, hook: WebhookServer) -> None:
    async def test(client: Client) -> None:
        conditions = [{"name": "labelled", "expression": "'call' in object.metadata.labels"}]
        hooked = webhook(hook, "CREATE", matchConditions=conditions)
        path = f"{REGISTRATION}/validatingwebhookconfigurations"
        await client.post(path, configuration("ValidatingWebhookConfiguration", hooked))
        await client.post(CONFIGMAPS, configmap("a", {"x": ""}))
        await client.post(CONFIGMAPS, configmap("b", {"call": ""}))
        assert [request["name"] for request in hook.requests] == ["b"]
        answer = await client.post(CONFIGMAPS, {"metadata": {"name": "c"}})
        assert answer.code == 403 and "no such key: labels" in answer.message

    run(test)
