"""`--authorization-config`: authorizers in order, webhooks with match conditions, changes of the file."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubist.api.filters import config_file
from kubist.api.filters.authorization import configuration as authorizationconfig
from kubist.model.meta.object import Object
from tests.filters.askers import Remote, ask
from tests.live import Live, Pki
from tests.waiting import wait_for

MAPS = "/api/v1/namespaces/default/configmaps"
RBAC = {"type": "RBAC", "name": "rbac"}


def document(*authorizers: Object, version: str = "v1") -> str:
    kind = {"apiVersion": f"apiserver.config.k8s.io/{version}", "kind": "AuthorizationConfiguration"}
    return yaml.safe_dump({**kind, "authorizers": list(authorizers)})


class Service:
    """A webhook that allows the user dev, and the files that name it."""

    def __init__(self, remote: Remote, pki: Pki, directory: Path) -> None:
        self.remote, self.directory = remote, directory
        self.status: Object | int = {"allowed": True}
        remote.answers["/review"] = lambda _: (
            self.status if isinstance(self.status, int) else {"status": self.status}
        )
        cluster = {"server": f"{remote.url}/review", "certificate-authority": str(pki.path("ca.crt"))}
        config = {
            "clusters": [{"name": "c", "cluster": cluster}],
            "contexts": [{"name": "x", "context": {"cluster": "c"}}],
            "current-context": "x",
        }
        self.kubeconfig = directory / "webhook.yaml"
        self.kubeconfig.write_text(yaml.safe_dump(config))
        self.file = directory / "authorization.yaml"

    def webhook(self, *conditions: str, name: str = "hook", **changes: Any) -> Object:
        settings: Object = {
            "timeout": "3s",
            "subjectAccessReviewVersion": "v1",
            "failurePolicy": "NoOpinion",
            "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": str(self.kubeconfig)},
            **changes,
        }
        if conditions:
            settings["matchConditionSubjectAccessReviewVersion"] = "v1"
            settings["matchConditions"] = [{"expression": condition} for condition in conditions]
        return {"type": "Webhook", "name": name, "webhook": settings}

    def live(self, pki: Pki, *authorizers: Object, **config: Any) -> Live:
        self.file.write_text(document(*authorizers))
        return Live(pki, authorization_config=str(self.file), **config)


@pytest.fixture
def service(remote: Remote, server_pki: Pki, tmp_path: Path) -> Service:
    return Service(remote, server_pki, tmp_path)


def get(live: Live, path: str, token: str = "dev-token", **headers: str) -> int:
    return ask(live, "GET", path, token, b"", **headers).status


def test_authorizers_decide_in_order(server_pki: Pki, service: Service) -> None:
    with service.live(server_pki, service.webhook(), RBAC) as live:
        assert get(live, MAPS) == 200
        service.status = {"allowed": False, "denied": True, "reason": "never"}
        assert ask(live, "GET", "/api/v1/pods", "dev-token").status == 403
        assert get(live, "/version") == 403, "a webhook that denies is final"
        service.status = {"allowed": False}
        assert get(live, "/healthz") == 200, "RBAC allows what the webhook leaves open"
        assert get(live, "/api/v1/nodes") == 403
        assert get(live, "/api/v1/nodes", "admin-token") == 200
        service.status = {"allowed": True, "denied": True, "reason": "both"}
        assert get(live, "/api/v1/services") == 500, "nobody knows what that means"
        live.client.close()


@pytest.mark.parametrize(
    ("condition", "asked"),
    [
        ("request.user == 'dev'", [MAPS, "/apis/apps/v1/deployments", "/version"]),
        ("has(request.resourceAttributes)", [MAPS, "/apis/apps/v1/deployments"]),
        ("has(request.resourceAttributes) && request.resourceAttributes.namespace == 'default'", [MAPS]),
        (
            "has(request.nonResourceAttributes) && request.nonResourceAttributes.path == '/version'",
            ["/version"],
        ),
        ("!has(request.resourceAttributes) || request.resourceAttributes.subresource == ''", None),
        ("'devs' in request.groups && request.uid == 'u-dev'", None),
        ("request.extra.exists(k, k == 'none')", []),
        (
            "request.?resourceAttributes.labelSelector.requirements.orValue([]).exists(r, r.key == 'a' && "
            "r.operator == 'In' && r.values == ['b'])",
            [f"{MAPS}?labelSelector=a%3Db"],
        ),
    ],
)
def test_webhook_is_called_only_if_its_match_conditions_hold(
    server_pki: Pki, service: Service, condition: str, asked: list[str] | None
) -> None:
    paths = [MAPS, "/apis/apps/v1/deployments", "/version", f"{MAPS}?labelSelector=a%3Db"]
    service.status = {"allowed": False}
    told: list[str] = []
    with service.live(server_pki, service.webhook(condition), RBAC) as live:
        for path in paths:
            before = len(service.remote.asked)
            get(live, path)
            if len(service.remote.asked) > before:
                told.append(path)
        live.client.close()
    wanted = paths if asked is None else asked
    if asked and MAPS in asked:
        wanted = [*asked, paths[3]]
    assert set(told) == set(wanted)


@pytest.mark.parametrize(("policy", "allowed"), [("NoOpinion", 200), ("Deny", 500)])
@pytest.mark.parametrize("failure", ["call", "condition"])
def test_failure_policy(server_pki: Pki, service: Service, policy: str, allowed: int, failure: str) -> None:
    service.status = 503
    conditions = ["request.resourceAttributes.name == 'a'"] if failure == "condition" else []
    with service.live(server_pki, service.webhook(*conditions, failurePolicy=policy), RBAC) as live:
        assert get(live, "/version") == allowed
        assert bool(service.remote.asked) == (failure == "call")
        assert get(live, "/version", "admin-token") == 200
        live.client.close()


def test_false_match_condition_outweighs_a_failing_one(server_pki: Pki, service: Service) -> None:
    conditions = ["request.resourceAttributes.name == 'a'", "request.user == 'nobody'"]
    with service.live(server_pki, service.webhook(*conditions, failurePolicy="Deny"), RBAC) as live:
        assert get(live, "/version") == 200
        live.client.close()


def test_webhook_responses_are_cached_for_the_configured_ttl(server_pki: Pki, service: Service) -> None:
    def asked(*authorizers: Object, allowed: bool) -> int:
        service.status = {"allowed": allowed}
        with service.live(server_pki, *authorizers, RBAC) as live:
            before = len(service.remote.asked)
            for _ in range(3):
                get(live, MAPS)
            live.client.close()
        return len(service.remote.asked) - before

    never: Object = {"cacheAuthorizedRequests": False, "cacheUnauthorizedRequests": False}
    assert asked(service.webhook(), allowed=True) == 1
    assert asked(service.webhook(), allowed=False) == 1
    assert asked(service.webhook(**never), allowed=True) == 3
    assert asked(service.webhook(**never), allowed=False) == 3
    assert asked(service.webhook(authorizedTTL="1ns"), allowed=True) == 3


def test_long_requests_are_not_cached(server_pki: Pki, service: Service) -> None:
    service.status = {"allowed": False}
    with service.live(server_pki, service.webhook(), RBAC) as live:
        for _ in range(2):
            get(live, f"/{'x' * 20_000}")
        assert len(service.remote.asked) == 2
        live.client.close()


@pytest.mark.parametrize(
    ("webhook", "why"),
    [
        ({"timeout": None}, "authorizers[0].timeout: Required value"),
        ({"timeout": "31s"}, 'authorizers[0].timeout: Invalid value: "31s": must be > 0s and <= 30s'),
        ({"timeout": "-1m30s"}, 'Invalid value: "-1m30s"'),
        ({"timeout": "soon"}, 'time: invalid duration "soon"'),
        ({"authorizedTTL": "-5s"}, 'authorizers[0].authorizedTTL: Invalid value: "-5s": must be > 0s'),
        ({"subjectAccessReviewVersion": None}, "authorizers[0].subjectAccessReviewVersion: Required value"),
        (
            {"subjectAccessReviewVersion": "v2"},
            'subjectAccessReviewVersion: Unsupported value: "v2": supported values: "v1", "v1beta1"',
        ),
        (
            {"matchConditionSubjectAccessReviewVersion": "v1beta1"},
            'Unsupported value: "v1beta1": supported values: "v1"',
        ),
        (
            {"matchConditions": [{"expression": "true"}]},
            "matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are specified",
        ),
        ({"failurePolicy": None}, "authorizers[0].failurePolicy: Required value"),
        ({"failurePolicy": "Allow"}, 'supported values: "NoOpinion", "Deny"'),
        ({"connectionInfo": {}}, "authorizers[0].connectionInfo.type: Required value"),
        ({"connectionInfo": {"type": "KubeConfigFile"}}, "connectionInfo.kubeConfigFile: Required value"),
        ({"connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "a"}}, "must be an absolute path"),
        (
            {"connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "/absent"}},
            "stat /absent: no such file",
        ),
        ({"connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "/"}}, "must be a regular file"),
        ({"connectionInfo": {"type": "InClusterConfig"}}, "InClusterConfig is not supported by this server"),
        (
            {"connectionInfo": {"type": "InClusterConfig", "kubeConfigFile": "/a"}},
            "can only be set when type=KubeConfigFile",
        ),
        ({"matchConditions": [{"expression": " "}]}, "matchConditions[0].expression: Required value"),
        (
            {"matchConditions": [{"expression": "true"}] * 2},
            'matchConditions[1].expression: Duplicate value: "true"',
        ),
        ({"matchConditions": [{"expression": "1"}]}, "must evaluate to bool but got int"),
        ({"matchConditions": [{"expression": "request.nose == ''"}]}, "undefined field 'nose'"),
        ({"matchConditions": [{"expression": f"{n} == 1"} for n in range(65)]}, "Too many: 65"),
        ({"retries": 1}, 'strict decoding error: unknown field "authorizers[0].webhook.retries"'),
    ],
)
def test_invalid_webhooks_are_rejected(service: Service, webhook: Object, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        authorizationconfig.parse(document(service.webhook(**webhook)).encode())


@pytest.mark.parametrize(
    ("authorizers", "why"),
    [
        ([], "authorizers: Required value: at least one authorization mode must be defined"),
        ([{"name": "x"}], "authorizers[0].type: Required value"),
        (
            [{"type": "Foo", "name": "x"}],
            'supported values: "ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC"',
        ),
        ([RBAC, RBAC], 'authorizers[1].type: Duplicate value: "RBAC"'),
        ([{"type": "RBAC"}], "authorizers[0].name: Required value"),
        ([{"type": "RBAC", "name": "R_"}], "authorizer name is invalid"),
        ([{"type": "RBAC", "name": "other"}], "expected name rbac for authorizer RBAC instead of other"),
        (
            [{"type": "Webhook", "name": "x"}],
            "authorizers[0].webhook: Required value: required when type=Webhook",
        ),
        ([RBAC | {"webhook": {}}], "may only be specified when type=Webhook"),
    ],
)
def test_invalid_authorizers_are_rejected(authorizers: list[Object], why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        authorizationconfig.parse(document(*authorizers).encode())


def test_invalid_webhook_kubeconfig_fails_at_start(server_pki: Pki, service: Service) -> None:
    for content in ("a: [", "[]", "clusters: 5", "{}"):
        service.kubeconfig.write_text(content)
        with pytest.raises(ValueError, match=r"webhook\.yaml is not a kubeconfig"):
            service.live(server_pki, service.webhook())


def test_abac_authorizer_needs_a_policy_file(server_pki: Pki, service: Service) -> None:
    abac = {"type": "ABAC", "name": "abac"}
    with pytest.raises(ValueError, match="--authorization-policy-file"):
        service.live(server_pki, abac)
    policies = service.directory / "policies"
    policies.write_text('{"user":"dev","resource":"configmaps","readonly":true}\n')
    with service.live(server_pki, abac, authorization_policy_file=str(policies)) as live:
        assert get(live, MAPS) == 200
        assert get(live, "/api/v1/nodes") == 403
        live.client.close()


def is_logged(caplog: pytest.LogCaptureFixture, text: str) -> bool:
    return text in caplog.text


def test_file_changes_are_loaded(server_pki: Pki, service: Service, monkeypatch: Any, caplog: Any) -> None:
    monkeypatch.setattr(config_file, "INTERVAL", 0.02)
    with service.live(server_pki, RBAC) as live:
        assert get(live, MAPS) == 403
        service.file.write_text(document(service.webhook(), RBAC))
        wait_for(lambda: get(live, MAPS) == 200)
        node = {"type": "Node", "name": "node"}
        for wrong, why in (
            (document(service.webhook()), "missing required types: [RBAC]"),
            (document(RBAC, node), "authorizer type Node is not allowed if it was not enabled"),
            ("junk", "failed to load AuthorizationConfiguration"),
            (document(RBAC, service.webhook(timeout="1h")), "must be > 0s and <= 30s"),
        ):
            service.file.write_text(wrong)
            wait_for(functools.partial(is_logged, caplog, why))
            assert get(live, MAPS) == 200
        service.file.write_text(document(RBAC))
        wait_for(lambda: get(live, MAPS) == 403)
        live.client.close()


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ({"authorization_mode": ("RBAC", "RBAC")}, "has mode specified more than once"),
        ({"authorization_mode": ()}, "at least one authorization-mode must be passed"),
        ({"authorization_mode": ("ABAC",)}, "policy file not passed"),
        ({"authorization_mode": ("Webhook",)}, "config file not passed"),
        ({"authorization_policy_file": "a"}, "without mode ABAC"),
        ({"authorization_webhook_config_file": "a"}, "without mode Webhook"),
    ],
)
def test_contradicting_modes_are_rejected(server_pki: Pki, flags: Object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Live(server_pki, **flags)
