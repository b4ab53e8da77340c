"""Admission webhooks of tests: registration over TLS, changes, denials, warnings, options and removal."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import threading
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from kubist.model.meta.object import Object
from kubist.testing import AdmissionRequest, Cluster, Denied, Host
from kubist.testing.cluster import Refused
from tests.testing.webhooks.objects import config_map, pod

PODS = "/api/v1/namespaces/default/pods"


def labels_of(cluster: Cluster, reference: str) -> Object:
    labels: Object = cluster.get(reference)["metadata"].get("labels") or {}
    return labels


def test_object_changed_in_place(cluster: Cluster) -> None:
    @cluster.mutating_webhook("pods", operations=["CREATE"])
    def add_label(pod: Object) -> None:
        pod["metadata"]["labels"] = {"example.com/team": "blue"}

    cluster.load(pod("web"))
    assert labels_of(cluster, "pod/web") == {"example.com/team": "blue"}
    assert len(add_label.calls) == 1
    call = add_label.calls[0]
    assert (call.operation, call.resource, call.namespace, call.name) == ("CREATE", "pods", "default", "web")
    assert call.user == "admin" and "system:masters" in call.groups and not call.dry_run
    assert call.object is not None and "labels" not in call.object["metadata"], "the object as it was sent"
    assert repr(call) == "<CREATE pods default/web by admin>"
    assert repr(add_label) == "<mutating webhook add-label: pods CREATE; 1 call>"


def new_object(pod: Object) -> Object:
    return {**pod, "metadata": {**pod["metadata"], "labels": {"team": "blue"}}}


def patch_list(pod: Object) -> list[Object]:
    return [{"op": "add", "path": "/metadata/labels", "value": {"team": "blue"}}]


async def coroutine(pod: Object) -> None:
    await asyncio.sleep(0)
    pod["metadata"]["labels"] = {"team": "blue"}


def by_request(request: AdmissionRequest) -> bool:
    assert request.object is not None
    request.object["metadata"]["labels"] = {"team": "blue"}
    return True


def both_and_default(pod: Object, request: AdmissionRequest, team: str = "blue") -> None:
    assert request.object is pod and request.options is not None
    pod["metadata"]["labels"] = {"team": team}


def keyword(pod: Object, *, request: AdmissionRequest) -> None:
    pod["metadata"]["labels"] = {"team": "blue" if request.user == "admin" else ""}


def everything(*values: Any) -> None:
    assert isinstance(values[1], AdmissionRequest)
    values[0]["metadata"]["labels"] = {"team": "blue"}


@pytest.mark.parametrize(
    "function", [new_object, patch_list, coroutine, by_request, both_and_default, keyword, everything]
)
def test_forms_of_mutating_functions(cluster: Cluster, function: Any) -> None:
    with cluster.mutating_webhook("pods")(function):
        cluster.load(pod("web"))
    assert labels_of(cluster, "pod/web") == {"team": "blue"}


def test_function_without_changes(cluster: Cluster) -> None:
    with cluster.mutating_webhook("pods")(lambda pod: pod) as hook:
        cluster.load(pod("web", a="b"))
    assert labels_of(cluster, "pod/web") == {"a": "b"} and hook.name == "lambda"


@pytest.mark.parametrize(
    ("function", "message", "code"),
    [
        (lambda pod: False, "denied the request: the function returned False", 403),
        (lambda pod: "no images without a tag", "denied the request: no images without a tag", 403),
    ],
)
@pytest.mark.parametrize("kind", ["validating_webhook", "mutating_webhook"])
def test_denials(cluster: Cluster, kind: str, function: Any, message: str, code: int) -> None:
    register = getattr(cluster, kind)("pods", name="check")
    with register(function), pytest.raises(Refused, match=message) as refused:
        cluster.load(pod("web"))
    assert refused.value.code == code and 'admission webhook "check.kubist.test"' in str(refused.value)
    assert cluster.list("pods") == []


def test_denial_with_code_warnings_and_audit(cluster: Cluster) -> None:
    @cluster.validating_webhook("pods")
    def check(pod: Object) -> None:
        raise Denied("broken", code=422, warnings=["look here"], audit={"checked": "yes"})

    body, warnings = post(cluster, PODS, pod("web"))
    assert (body["code"], body["reason"]) == (422, "Invalid")
    assert body["message"] == 'admission webhook "check.kubist.test" denied the request: broken'
    assert warnings == ['299 - "look here"']


def post(cluster: Cluster, path: str, body: Object) -> tuple[Object, list[str]]:
    """Response and its warnings."""
    request = urllib.request.Request(
        cluster.url + path,
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {cluster.token}", "Content-Type": "application/json"},
    )
    context = ssl.create_default_context(cafile=str(cluster.ca))
    try:
        with urllib.request.urlopen(request, context=context) as response:
            return json.load(response), response.headers.get_all("Warning") or []
    except HTTPError as error:
        with error:
            return json.load(error), error.headers.get_all("Warning") or []


def test_allowed_request_with_warning(cluster: Cluster) -> None:
    @cluster.validating_webhook("pods")
    def check(pod: Object, request: AdmissionRequest) -> bool:
        request.warn("no limits")
        request.audit("limits", "none")
        return True

    body, warnings = post(cluster, PODS, pod("web"))
    assert body["kind"] == "Pod" and warnings == ['299 - "no limits"']
    assert len(check.calls) == 1


def test_update_and_delete_have_the_old_object(cluster: Cluster) -> None:
    @cluster.validating_webhook("configmaps", operations=["UPDATE", "DELETE"])
    def check(obj: Object, request: AdmissionRequest) -> str | None:
        if request.operation == "DELETE":
            assert request.object is None and obj is request.old_object
            return "still in use" if obj["data"]["x"] == "2" else None
        assert request.old_object is not None
        return "x must not shrink" if obj["data"]["x"] < request.old_object["data"]["x"] else None

    cluster.load(config_map("a", x="1"))
    cluster.load(config_map("a", x="2"))
    with pytest.raises(Refused, match="x must not shrink"):
        cluster.load(config_map("a", x="1"))
    with pytest.raises(Refused, match="still in use"):
        cluster.delete("cm/a")
    assert [call.operation for call in check.calls] == ["UPDATE", "UPDATE", "DELETE"]


def test_configuration_object_and_its_removal(cluster: Cluster) -> None:
    @cluster.mutating_webhook(
        "pods",
        "deployments.apps",
        "widgets.example.com",
        "pods/status",
        operations=["CREATE", "UPDATE"],
        versions=["v1"],
        scope="Namespaced",
        namespace_selector={"matchLabels": {"a": "b"}},
        object_selector={"matchLabels": {"c": "d"}},
        match_conditions=["request.name != 'x'"],
        match_policy="Exact",
        failure_policy="Ignore",
        side_effects="NoneOnDryRun",
        timeout=3,
        reinvocation="IfNeeded",
    )
    def set_defaults(obj: Object) -> None: ...

    found = cluster.get("mutatingwebhookconfiguration/set-defaults")["webhooks"]
    assert len(found) == 1
    webhook = found[0]
    authority = base64.b64decode(webhook["clientConfig"].pop("caBundle"))
    assert authority.startswith(b"-----BEGIN CERTIFICATE")
    assert webhook.pop("clientConfig")["url"].startswith("https://127.0.0.1:")
    rule = {"apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "scope": "Namespaced"}
    assert webhook == {
        "name": "set-defaults.kubist.test",
        "admissionReviewVersions": ["v1"],
        "rules": [
            {"apiGroups": [""], "resources": ["pods", "pods/status"], **rule},
            {"apiGroups": ["apps"], "resources": ["deployments"], **rule},
            {"apiGroups": ["example.com"], "resources": ["widgets"], **rule},
        ],
        "namespaceSelector": {"matchLabels": {"a": "b"}},
        "objectSelector": {"matchLabels": {"c": "d"}},
        "matchConditions": [{"name": "condition-1", "expression": "request.name != 'x'"}],
        "matchPolicy": "Exact",
        "failurePolicy": "Ignore",
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": 3,
        "reinvocationPolicy": "IfNeeded",
    }
    set_defaults.remove()
    set_defaults.remove()
    assert cluster.list("mutatingwebhookconfigurations") == []
    assert repr(set_defaults).endswith("; 0 calls, removed>") and len(cluster.webhooks) == 0


def test_removed_webhook_is_not_called(cluster: Cluster) -> None:
    with cluster.validating_webhook("pods")(lambda pod: "no") as hook:
        with pytest.raises(Refused):
            cluster.load(pod("web"))
        url = cluster.get("validatingwebhookconfiguration/lambda")["webhooks"][0]["clientConfig"]["url"]
    cluster.load(pod("web"))
    assert len(hook.calls) == 1
    with pytest.raises(HTTPError, match="404") as answer:
        urllib.request.urlopen(url, b"{}", context=ssl._create_unverified_context())
    answer.value.close()


def test_configuration_that_the_test_deleted(cluster: Cluster) -> None:
    hook = cluster.validating_webhook("pods")(lambda pod: "no")
    cluster.delete("validatingwebhookconfiguration/lambda")
    cluster.load(pod("web"))
    hook.remove()
    assert hook.calls == []


@pytest.mark.parametrize(
    ("resources", "rules"),
    [
        (["pods/exec"], [([""], ["pods/exec"], ["CONNECT"])]),
        (["pods", "pods/exec"], [([""], ["pods", "pods/exec"], ["CREATE", "UPDATE", "CONNECT"])]),
        (["deploy"], [(["apps"], ["deployments"], ["CREATE", "UPDATE"])]),
        (["Deployment", "pod"], [(["apps"], ["deployments"], None), ([""], ["pods"], None)]),
        (["deployments.apps/scale"], [(["apps"], ["deployments/scale"], None)]),
        (["*"], [(["*"], ["*"], None)]),
        (["*/*"], [(["*"], ["*/*"], None)]),
        (["pods/*"], [([""], ["pods/*"], None)]),
        (["*.apps"], [(["apps"], ["*"], None)]),
        (["later.example.com"], [(["example.com"], ["later"], None)]),
    ],
)
def test_names_of_resources(kubist_server: Cluster, resources: list[str], rules: list[Any]) -> None:
    with kubist_server.validating_webhook(*resources, object_selector={"matchLabels": {"a": "b"}})(
        lambda: True
    ):
        found = kubist_server.get("validatingwebhookconfiguration/lambda")["webhooks"][0]["rules"]
    for rule, (groups, names, operations) in zip(found, rules, strict=True):
        assert (rule["apiGroups"], rule["resources"]) == (groups, names)
        assert operations is None or rule["operations"] == operations


def too_many(pod: Object, request: AdmissionRequest, more: str) -> None: ...


@pytest.mark.parametrize(
    ("arguments", "options", "function", "message"),
    [
        (["podz"], {}, print, 'there is no resource "podz"; did you mean "pod"'),
        (["deployments.app"], {}, print, 'there is no resource "deployments.app"'),
        (["pods/exce"], {}, print, 'pods has no subresource "exce"; did you mean "exec"'),
        ([], {}, print, "needs resources by name"),
        ([print], {}, print, "needs resources by name"),
        (
            ["pods"],
            {"operations": ["CREATED"]},
            print,
            'there is no operation "CREATED"; did you mean "CREATE"',
        ),
        (["pods"], {"operation": ["CREATE"]}, print, 'no option "operation"; did you mean "operations"'),
        (["pods"], {"failure_policy": "Fails"}, print, "webhooks\\[0\\].failurePolicy"),
        (["pods"], {"match_conditions": ["1 +"]}, print, "matchConditions\\[0\\].expression"),
        (["pods"], {"timeout": 300}, print, "timeoutSeconds"),
        (["pods"], {"name": "No Name"}, print, "metadata.name"),
        (["pods"], {}, too_many, "needs 3 arguments; it gets object and request"),
    ],
)
def test_mistakes_are_explained(
    kubist_server: Cluster, arguments: list[Any], options: Any, function: Any, message: str
) -> None:
    with pytest.raises((LookupError, TypeError, ValueError, Refused), match=message):
        kubist_server.validating_webhook(*arguments, **options)(function)
    assert kubist_server.list("validatingwebhookconfigurations") == [] and len(kubist_server.webhooks) == 0


def test_functions_may_use_the_cluster(cluster: Cluster) -> None:
    """A function creates an object, which calls another webhook, while requests of several threads wait."""

    @cluster.mutating_webhook("pods")
    def make_config(pod: Object) -> None:
        cluster.load(config_map(f"of-{pod['metadata']['name']}"))

    @cluster.validating_webhook("configmaps", operations="CREATE")
    def check(config: Object) -> None:
        assert cluster.get("ns/default")

    threads = [threading.Thread(target=cluster.load, args=(pod(f"p{number}"),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cluster.list("pods")) == 8 and len(check.calls) == 8


def test_asynchronous_cluster() -> None:
    async def work() -> None:
        async with Cluster() as cluster:

            @cluster.mutating_webhook("pods")
            async def add_label(pod: Object) -> None:
                await asyncio.to_thread(cluster.get, "ns/default")
                pod["metadata"]["labels"] = {"a": "b"}

            cluster.load(pod("blocking"))
            await asyncio.to_thread(cluster.load, pod("thread"))
            assert labels_of(cluster, "pod/blocking") == labels_of(cluster, "pod/thread") == {"a": "b"}

    asyncio.run(work())


def test_two_clusters_with_functions_of_one_name(cluster: Cluster, kubist_host: Host) -> None:
    other = kubist_host.cluster()
    try:
        mine = cluster.validating_webhook("pods")(lambda pod: "mine")
        second = cluster.validating_webhook("pods")(lambda pod: "second")
        theirs = other.validating_webhook("pods")(lambda pod: "theirs")
        assert [mine.name, second.name, theirs.name] == ["lambda", "lambda-2", "lambda"]
        with pytest.raises(Refused, match="theirs"):
            other.load(pod("web"))
        assert mine.calls == [] and len(theirs.calls) == 1
        assert list(cluster.webhooks) == [mine, second]
    finally:
        other.stop()


def test_webhook_on_disk_is_removed_when_the_cluster_stops(tmp_path: Any) -> None:
    with Cluster(data_dir=str(tmp_path / "data")) as cluster:
        hook = cluster.validating_webhook("pods")(lambda pod: "no")
    assert hook.is_removed
    with Cluster(data_dir=str(tmp_path / "data")) as cluster:
        assert cluster.list("validatingwebhookconfigurations") == []
        cluster.load(pod("web"))


def test_faults_do_not_hit_registration(cluster: Cluster) -> None:
    with cluster.faults.add(verb=["create", "delete"], user_agent="kubist", status=500) as fault:
        hook = cluster.validating_webhook("pods")(lambda pod: None)
        hook.remove()
        with pytest.raises(Refused):
            cluster.request("POST", PODS, pod("web"))
        assert fault.hits == 1


def test_audit_annotations_are_logged(tmp_path: Path) -> None:
    policy, log = tmp_path / "policy.yaml", tmp_path / "audit.log"
    policy.write_text("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}")
    with Cluster(audit_policy_file=str(policy), audit_log_path=str(log)) as cluster:

        @cluster.validating_webhook("pods")
        def check(pod: Object, request: AdmissionRequest) -> None:
            request.audit("limits", "none")

        cluster.load(pod("web"))
    events = [json.loads(line) for line in log.read_text().splitlines()]
    found = [event.get("annotations", {}).get("check.kubist.test/limits") for event in events]
    assert "none" in found


def test_exec_is_denied(cluster: Cluster) -> None:
    cluster.load(pod("web"))

    @cluster.validating_webhook("pods/exec")
    def no_shell(options: Object, request: AdmissionRequest) -> str | None:
        return "no shells" if options["command"] == ["sh"] else None

    with pytest.raises(Refused, match="no shells"):
        cluster.request("POST", f"{PODS}/web/exec?command=sh&stdout=true")
    call = no_shell.calls[0]
    assert (call.operation, call.resource, call.subresource, call.name) == ("CONNECT", "pods", "exec", "web")
    assert call.object is not None and call.object["kind"] == "PodExecOptions"
