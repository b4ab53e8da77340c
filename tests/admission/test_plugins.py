"""Built-in admission plugins as clients see them: changes to objects, and rejections."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubist.api.admission.order import enabled
from kubist.api.config import Config
from kubist.model.meta.object import Object

from .conftest import Client

NAMESPACE = "/api/v1/namespaces/default"
PODS = f"{NAMESPACE}/pods"
Run = Callable[..., None]


def pod(name: str = "p", **spec: Any) -> Object:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i:1"}], **spec}}


def test_default_plugins_run_in_order() -> None:
    names = enabled(Config())
    assert names[0] == "NamespaceLifecycle" and names[-1] == "ResourceQuota"
    assert names.index("MutatingAdmissionPolicy") < names.index("MutatingAdmissionWebhook")
    assert "NodeRestriction" not in names


@pytest.mark.parametrize(
    ("config", "wrong"),
    [
        (Config(enable_admission_plugins=("Nope",)), 'enable-admission-plugins plugin "Nope" is unknown'),
        (Config(disable_admission_plugins=("Nope",)), 'disable-admission-plugins plugin "Nope" is unknown'),
        (
            Config(enable_admission_plugins=("Priority",), disable_admission_plugins=("Priority",)),
            r"\[Priority\] in enable-admission-plugins and disable-admission-plugins overlapped",
        ),
    ],
)
def test_unknown_and_contradictory_plugin_names_are_rejected(config: Config, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        enabled(config)


def test_plugin_can_be_disabled(run: Run) -> None:
    async def test(client: Client) -> None:
        assert "priority" not in (await client.post(PODS, pod())).body["spec"]

    run(test, disable_admission_plugins=("ServiceAccount", "Priority"))


def test_limits_and_quotas_apply_while_they_exist(run: Run) -> None:
    async def test(client: Client) -> None:
        before = await client.post(PODS, pod("before"))
        assert before.body["spec"]["containers"][0]["resources"] == {}
        limits = {"limits": [{"type": "Container", "defaultRequest": {"cpu": "1"}}]}
        await client.post(f"{NAMESPACE}/limitranges", {"metadata": {"name": "l"}, "spec": limits})
        limited = (await client.post(PODS, pod("limited"))).body["spec"]["containers"][0]
        assert limited["resources"] == {"requests": {"cpu": "1"}}
        await client.delete(f"{NAMESPACE}/limitranges/l")
        quota: Object = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}}
        await client.post(f"{NAMESPACE}/resourcequotas", quota)
        quota["status"] = {"hard": {"pods": "2"}, "used": {"pods": "2"}}
        await client.put(f"{NAMESPACE}/resourcequotas/q/status", quota)
        assert (await client.post(PODS, pod("refused"))).code == 403
        await client.delete(f"{NAMESPACE}/resourcequotas/q")
        after = await client.post(PODS, pod("after"))
        assert (after.code, after.body["spec"]["containers"][0]["resources"]) == (201, {})

    run(test)


def test_absent_namespace_is_reported_first(run: Run) -> None:
    async def test(client: Client) -> None:
        answer = await client.post("/api/v1/namespaces/nowhere/pods", pod(containers=[]))
        assert (answer.code, answer.body["details"]) == (404, {"name": "nowhere", "kind": "namespaces"})

    run(test)


def test_terminating_namespace_rejects_creates(run: Run) -> None:
    async def test(client: Client) -> None:
        await client.post("/api/v1/namespaces", {"metadata": {"name": "going"}})
        await client.post("/api/v1/namespaces/going/configmaps", {"metadata": {"name": "c"}})
        await client.delete("/api/v1/namespaces/going")
        answer = await client.post("/api/v1/namespaces/going/configmaps", {"metadata": {"name": "d"}})
        assert (answer.code, answer.body["details"]["causes"][0]["reason"]) == (403, "NamespaceTerminating")
        changed = await client.patch("/api/v1/namespaces/going/configmaps/c", {"data": {"a": "b"}})
        assert changed.code == 200

    run(test)


@pytest.mark.parametrize(("name", "code"), [("default", 403), ("kube-system", 403), ("kube-node-lease", 200)])
def test_system_namespaces_cannot_be_deleted(run: Run, name: str, code: int) -> None:
    async def test(client: Client) -> None:
        assert (await client.delete(f"/api/v1/namespaces/{name}")).code == code

    run(test)


def test_pod_gets_service_account_and_token_mount(run: Run) -> None:
    async def test(client: Client) -> None:
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        await client.post(accounts, {"metadata": {"name": "default"}, "imagePullSecrets": [{"name": "pull"}]})
        spec = (await client.post(PODS, pod())).body["spec"]
        assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
        (volume,) = spec["volumes"]
        assert volume["name"].startswith("kube-api-access-")
        assert [list(source) for source in volume["projected"]["sources"]] == [
            ["serviceAccountToken"],
            ["configMap"],
            ["downwardAPI"],
        ]
        (mount,) = spec["containers"][0]["volumeMounts"]
        assert mount["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"
        assert spec["imagePullSecrets"] == [{"name": "pull"}]
        bare = (await client.post(PODS, pod("bare", automountServiceAccountToken=False))).body["spec"]
        assert "volumes" not in bare
        answer = await client.post(PODS, pod("ghost", serviceAccountName="ghost"))
        why = 'error looking up service account default/ghost: serviceaccount "ghost" not found'
        assert (answer.code, answer.message) == (403, f'pods "ghost" is forbidden: {why}')

    run(test, disable_admission_plugins=())


def test_limit_range_sets_defaults_and_enforces_bounds(run: Run) -> None:
    async def test(client: Client) -> None:
        limits = [
            {
                "type": "Container",
                "default": {"cpu": "500m"},
                "defaultRequest": {"cpu": "100m"},
                "min": {"cpu": "50m"},
                "max": {"cpu": "1"},
                "maxLimitRequestRatio": {"cpu": "6"},
            },
            {"type": "Pod", "max": {"cpu": "1500m"}},
            {"type": "PersistentVolumeClaim", "max": {"storage": "2Gi"}},
        ]
        path = "/api/v1/namespaces/default/limitranges"
        assert (await client.post(path, {"metadata": {"name": "l"}, "spec": {"limits": limits}})).code == 201
        answer = await client.post(PODS, pod())
        assert answer.body["spec"]["containers"][0]["resources"] == {
            "limits": {"cpu": "500m"},
            "requests": {"cpu": "100m"},
        }
        annotation = answer.body["metadata"]["annotations"]["kubernetes.io/limit-ranger"]
        assert annotation == "LimitRanger plugin set: cpu request for container c; cpu limit for container c"

        def sized(request: str, limit: str) -> Object:
            resources = {"requests": {"cpu": request}, "limits": {"cpu": limit}}
            return pod("q", containers=[{"name": "c", "image": "i", "resources": resources}])

        for request, limit, why in (
            ("10m", "60m", "minimum cpu usage per Container is 50m, but request is 10m"),
            ("500m", "2", "maximum cpu usage per Container is 1, but limit is 2"),
            (
                "100m",
                "700m",
                "cpu max limit to request ratio per Container is 6, but provided ratio is 7.000000",
            ),
        ):
            answer = await client.post(PODS, sized(request, limit))
            assert answer.code == 403 and why in answer.message
        three = [{"name": f"c{n}", "image": "i"} for n in range(4)]
        answer = await client.post(PODS, pod("many", containers=three))
        assert "maximum cpu usage per Pod is 1500m, but limit is 2" in answer.message
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "3Gi"}}}
        claims = "/api/v1/namespaces/default/persistentvolumeclaims"
        answer = await client.post(claims, {"metadata": {"name": "c"}, "spec": spec})
        assert "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi" in answer.message

    run(test)


def test_priority_is_set_from_the_class(run: Run) -> None:
    async def test(client: Client) -> None:
        path = "/apis/scheduling.k8s.io/v1/priorityclasses"
        await client.post(path, {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"})
        spec = (await client.post(PODS, pod(priorityClassName="high"))).body["spec"]
        assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")
        answer = await client.post(PODS, pod("q", priorityClassName="high", priority=7))
        assert answer.code == 403 and "must not be provided in pod spec" in answer.message
        await client.post(path, {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True})
        spec = (await client.post(PODS, pod("r"))).body["spec"]
        assert (spec["priority"], spec["priorityClassName"]) == (5, "usual")
        again = await client.post(path, {"metadata": {"name": "other"}, "value": 6, "globalDefault": True})
        assert again.code == 403 and "PriorityClass usual is already marked as default" in again.message

    run(test)


def test_node_restriction_limits_a_node_to_its_own_objects(run: Run, tmp_path: Path) -> None:
    async def test(client: Client) -> None:
        node = client.as_("node-token")
        await client.post("/api/v1/nodes", {"metadata": {"name": "other"}})
        assert (await node.post("/api/v1/nodes", {"metadata": {"name": "n1"}})).code == 201
        answer = await node.patch("/api/v1/nodes/other", {"metadata": {"labels": {"a": "b"}}})
        assert (answer.code, answer.message) == (
            403,
            'nodes "other" is forbidden: node "n1" is not allowed to modify node "other"',
        )
        labels = {"node-restriction.kubernetes.io/x": "y", "topology.kubernetes.io/zone": "z"}
        answer = await node.patch("/api/v1/nodes/n1", {"metadata": {"labels": labels}})
        assert answer.message.endswith("is not allowed to modify labels: node-restriction.kubernetes.io/x")
        answer = await node.post(PODS, pod(nodeName="n1"))
        assert answer.code == 403 and "can only create mirror pods" in answer.message

    tokens = tmp_path / "nodes"
    tokens.write_text('admin-token,admin,u1,"system:masters"\nnode-token,system:node:n1,u3,"system:nodes"\n')
    plugins = {"enable_admission_plugins": ("NodeRestriction",)}
    run(test, token_auth_file=str(tokens), authorization_mode=("AlwaysAllow",), **plugins)


def test_owner_references_require_permissions_when_enforced(run: Run) -> None:
    async def test(client: Client) -> None:
        owner = (await client.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "o"}})).body
        reference = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "o",
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": True,
        }
        rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}]
        await client.post(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "r"}, "rules": rules}
        )
        await client.post(
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            {
                "metadata": {"name": "r"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
                "subjects": [{"kind": "Group", "name": "devs", "apiGroup": "rbac.authorization.k8s.io"}],
            },
        )
        secret = {"metadata": {"name": "s", "ownerReferences": [reference]}}
        path = "/api/v1/namespaces/default/secrets"
        answer = await client.as_("dev-token").post(path, secret)
        why = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
        assert answer.code == 403 and why in answer.message
        assert (await client.post(path, secret)).code == 201

    plugins = {"enable_admission_plugins": ("OwnerReferencesPermissionEnforcement",)}
    run(test, authorization_mode=("RBAC",), **plugins)


def test_pod_security_is_configured_by_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "admission.yaml"
    file.write_text(
        """
        apiVersion: apiserver.config.k8s.io/v1
        kind: AdmissionConfiguration
        plugins:
        - name: PodSecurity
          configuration:
            apiVersion: pod-security.admission.config.k8s.io/v1
            kind: PodSecurityConfiguration
            defaults: {enforce: baseline, enforce-version: latest}
            exemptions: {namespaces: [kube-system]}
        """
    )

    async def test(client: Client) -> None:
        answer = await client.post(PODS, pod(hostNetwork=True))
        why = 'violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)'
        assert (answer.code, answer.message) == (403, f'pods "p" is forbidden: {why}')
        assert (await client.post("/api/v1/namespaces/kube-system/pods", pod(hostNetwork=True))).code == 201

    run(test, admission_control_config_file=str(file))


def test_resize_must_fit_the_node(run: Run) -> None:
    async def test(client: Client) -> None:
        await client.post("/api/v1/nodes", {"metadata": {"name": "n"}})
        size = {"cpu": "2", "memory": "1Gi", "pods": "9"}
        await client.patch("/api/v1/nodes/n/status", {"status": {"capacity": size, "allocatable": size}})

        def sized(cpu: str) -> list[Object]:
            resources = {"requests": {"cpu": cpu, "memory": "10Mi"}}
            return [{"name": "c", "image": "i", "resources": resources}]

        await client.post(PODS, pod(nodeName="n", containers=sized("1")))
        live = (await client.get(f"{PODS}/p")).body
        live["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "3", "memory": "10Mi"}}
        answer = await client.put(f"{PODS}/p/resize", live)
        assert (answer.code, answer.body["details"]["causes"]) == (403, [{"reason": "NodeCapacity"}])
        assert "cpu, requested: 3000, allocatable: 2000" in answer.message

    run(test)
