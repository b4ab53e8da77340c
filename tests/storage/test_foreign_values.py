"""Stored values of kube-apiserver and of other versions of Kubist: they have defaults and the requested
version."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubist.model.codec import protobuf
from kubist.model.meta.object import Object
from kubist.model.schema.catalog import schema_for
from kubist.model.schema.decode import decode
from kubist.storage.cache.entry import MARK
from tests.live import Live, version

POD_SPEC: Object = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
TEMPLATE: Object = {"metadata": {"labels": {"a": "b"}}, "spec": POD_SPEC}


def obj(api_version: str, kind: str, name: str, namespace: str = "default", **rest: Any) -> Object:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"kind": kind, "apiVersion": api_version, "metadata": metadata, **rest}


def as_json(stored: Object) -> bytes:
    return json.dumps(stored, separators=(",", ":")).encode()


def as_protobuf(stored: Object) -> bytes:
    api_version, kind = stored["apiVersion"], stored["kind"]
    group, _, name = api_version.rpartition("/")
    schema = schema_for(group, name, kind)
    body = {field: value for field, value in stored.items() if field not in ("kind", "apiVersion")}
    return protobuf.wrap(api_version, kind, protobuf.encode(schema, decode(schema, body)))


FORMS = {
    "as this server orders it": as_json,
    "with a line break": lambda stored: as_json(stored) + b"\n",
    "sorted": lambda stored: json.dumps(stored, sort_keys=True).encode(),
    "protobuf": as_protobuf,
}


def store(live: Live, key: str, value: bytes) -> None:
    live.run(live.server.registry.store.create(f"/registry/{key}", value))


@pytest.fixture(params=FORMS.values(), ids=list(FORMS))
def form(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_foreign_value_is_read_with_defaults(shared_live: Live, namespace: str, form: Any) -> None:
    job = obj("batch/v1", "Job", "j", namespace, spec={"template": TEMPLATE})
    store(shared_live, f"jobs/{namespace}/j", form(job))
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    shown = shared_live.client.get(f"{path}/j")
    assert shown["metadata"]["labels"] == {"a": "b"}
    assert (shown["spec"]["completions"], shown["spec"]["suspend"]) == (1, False)
    assert shown["spec"]["template"]["spec"]["dnsPolicy"] == "ClusterFirst"
    [listed] = shared_live.client.get(f"{path}?labelSelector=a%3Db")["items"]
    assert listed["spec"] == shown["spec"]


def test_foreign_value_is_watched_with_defaults(shared_live: Live, namespace: str, form: Any) -> None:
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
    binding = obj(
        *("rbac.authorization.k8s.io/v1", "RoleBinding", "r", namespace),
        roleRef={"kind": "Role", "name": "x"},
        subjects=[{"kind": "User", "name": "u"}],
    )
    with shared_live.client.watch(path) as watch:
        store(shared_live, f"rolebindings/{namespace}/r", form(binding))
        [event] = watch.take(1)
    assert event["object"]["roleRef"]["apiGroup"] == "rbac.authorization.k8s.io"
    assert event["object"]["subjects"][0]["apiGroup"] == "rbac.authorization.k8s.io"


def test_value_stored_in_any_served_version_is_readable(shared_live: Live, namespace: str, form: Any) -> None:
    target = {"kind": "Deployment", "name": "d"}
    scaler = obj(
        *("autoscaling/v1", "HorizontalPodAutoscaler", "h", namespace),
        spec={"maxReplicas": 3, "scaleTargetRef": target, "targetCPUUtilizationPercentage": 60},
    )
    store(shared_live, f"horizontalpodautoscalers/{namespace}/h", form(scaler))
    base = f"namespaces/{namespace}/horizontalpodautoscalers/h"
    first = shared_live.client.get(f"/apis/autoscaling/v1/{base}")
    assert (first["spec"]["minReplicas"], first["spec"]["targetCPUUtilizationPercentage"]) == (1, 60)
    second = shared_live.client.get(f"/apis/autoscaling/v2/{base}")
    assert second["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 60
    event = obj("events.k8s.io/v1", "Event", "e", namespace, note="seen", regarding={"kind": "Pod"})
    store(shared_live, f"events/{namespace}/e", form(event))
    assert shared_live.client.get(f"/api/v1/namespaces/{namespace}/events/e")["message"] == "seen"


@pytest.mark.parametrize("api_version", ["apps/v1beta2", "extensions/v1beta1"])
def test_value_stored_in_a_removed_version_is_readable(
    shared_live: Live, namespace: str, api_version: str
) -> None:
    template = {**TEMPLATE, "spec": {"containers": POD_SPEC["containers"]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    stored = obj(api_version, "Deployment", "d", namespace, spec=spec)
    store(shared_live, f"deployments/{namespace}/d", as_json(stored))
    shown = shared_live.client.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/d")
    assert (shown["apiVersion"], shown["spec"]["replicas"]) == ("apps/v1", 1)


def test_service_without_cluster_ips_gets_them(shared_live: Live, namespace: str, form: Any) -> None:
    def shown(name: str, **spec: Any) -> Any:
        stored = obj("v1", "Service", name, namespace, spec=spec)
        store(shared_live, f"services/specs/{namespace}/{name}", form(stored))
        return shared_live.client.get(f"/api/v1/namespaces/{namespace}/services/{name}")["spec"]

    ports = [{"port": 80}]
    plain = shown("a", clusterIP="10.0.0.250", ports=ports)
    assert (plain["clusterIPs"], plain["ipFamilies"]) == (["10.0.0.250"], ["IPv4"])
    assert (plain["ipFamilyPolicy"], plain["ports"][0]["targetPort"]) == ("SingleStack", 80)
    assert shown("b", clusterIP="None", ports=ports)["ipFamilyPolicy"] == "RequireDualStack"
    outside = shown("c", type="ExternalName", externalName="x.example", internalTrafficPolicy="Cluster")
    assert "internalTrafficPolicy" not in outside


def test_claim_without_data_source_ref_gets_it(shared_live: Live, namespace: str, form: Any) -> None:
    source = {"kind": "PersistentVolumeClaim", "name": "x"}
    claim = obj("v1", "PersistentVolumeClaim", "c", namespace, spec={"dataSource": source})
    store(shared_live, f"persistentvolumeclaims/{namespace}/c", form(claim))
    shown = shared_live.client.get(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/c")
    assert shown["spec"]["dataSourceRef"] == shown["spec"]["dataSource"]


def test_unchanged_update_rewrites_a_foreign_value(shared_live: Live, namespace: str, form: Any) -> None:
    key = f"configmaps/{namespace}/c"
    store(shared_live, key, form(obj("v1", "ConfigMap", "c", namespace, data={"a": "b"})))
    path = f"/api/v1/namespaces/{namespace}/configmaps/c"
    before = shared_live.client.get(path)
    after = shared_live.client.put(path, before)
    assert version(after) > version(before)
    held = shared_live.run(shared_live.server.registry.store.get(f"/registry/{key}"))
    assert held is not None
    assert held.value.startswith(MARK)
    assert json.loads(held.value)["data"] == {"a": "b"}
    assert version(shared_live.client.put(path, after)) == version(after)


def test_value_of_an_unknown_kind_stays_unreadable(live: Live) -> None:
    store(live, "configmaps/default/odd", as_json(obj("example.com/v1", "Odd", "odd")))
    answer = live.client.ask("GET", "/api/v1/namespaces/default/configmaps/odd")
    assert answer.status == 500


def test_flow_schema_without_uid_does_not_break_flow_control(live: Live) -> None:
    spec = {
        "matchingPrecedence": 1,
        "priorityLevelConfiguration": {"name": "exempt"},
        "rules": [
            {
                "subjects": [{"kind": "User", "user": {"name": "*"}}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/version"]}],
            }
        ],
    }
    schema = obj("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "a", "", spec=spec)
    before = live.client.ask("GET", "/version").headers["X-Kubernetes-PF-FlowSchema-UID"]
    store(live, "flowschemas/a", as_json(schema))
    answer = live.client.ask("GET", "/version")
    assert answer.status == 200
    assert before
    assert answer.headers["X-Kubernetes-PF-FlowSchema-UID"] != before
