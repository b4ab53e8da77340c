"""The smaller controllers, each by its visible effect."""

from __future__ import annotations

import base64
import time
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import kubist
from kubist.cluster.control.manager import ON_REQUEST, available, chosen
from kubist.testing import Cluster
from kubist.testing.cluster import Refused

MERGE = "application/merge-patch+json"
POD = {"containers": [{"name": "c", "image": "i"}]}


def test_controllers_are_selected_by_name() -> None:
    everything = {loop.name for loop in available()} - set(ON_REQUEST)
    assert {loop.name for loop in chosen(("*",))} == everything
    assert {loop.name for loop in chosen(("*", "-namespace"))} == everything - {"namespace"}
    assert {loop.name for loop in chosen(("namespace", "disruption"))} == {"namespace", "disruption"}
    assert chosen(()) == []


@pytest.mark.parametrize("names", [("foo",), ("*", "-foo"), ("namespace", "namespaces")])
def test_unknown_controller_error_lists_the_known_ones(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"is not a controller: choose from .*namespace, "):
        chosen(names)


def test_server_with_an_unknown_controller_does_not_start() -> None:
    with pytest.raises(ValueError, match="'foo' is not a controller"), kubist.Server(controllers=("foo",)):
        pass


def test_deleted_default_service_account_is_created_again(cluster: Cluster) -> None:
    before = cluster.get("sa/default")["metadata"]["uid"]
    cluster.delete("sa/default")
    cluster.wait("sa/default", lambda account: account["metadata"]["uid"] != before)


def test_changed_root_ca_config_map_is_restored(cluster: Cluster) -> None:
    path = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt"
    cluster.request("PATCH", path, {"data": {"ca.crt": "forged"}}, MERGE)
    cluster.wait("cm/kube-root-ca.crt", lambda held: held["data"] == {"ca.crt": cluster.ca.read_text()})


def test_service_account_secret_gets_a_valid_token(cluster: Cluster) -> None:
    annotations = {"kubernetes.io/service-account.name": "default"}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/service-account-token",
        "metadata": {"name": "token", "annotations": annotations},
    }
    cluster.load(secret)
    data = cluster.wait("secret/token", lambda held: "token" in (held.get("data") or {}))["data"]
    assert base64.b64decode(data["namespace"]) == b"default"
    review = {"spec": {"token": base64.b64decode(data["token"]).decode()}}
    status = cluster.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)["status"]
    assert status["user"]["username"] == "system:serviceaccount:default:default"
    cluster.delete("sa/default")
    cluster.wait("secret/token", "delete")


def test_aggregated_roles_have_the_rules_of_selected_roles(cluster: Cluster) -> None:
    assert cluster.get("clusterrole/view")["rules"]
    rules = [{"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get"]}]
    labels = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "more", "labels": labels},
        "rules": rules,
    }
    cluster.load(role)
    for name in ("view", "edit", "admin"):
        cluster.wait(f"clusterrole/{name}", lambda held: rules[0] in held["rules"])
    cluster.delete("clusterrole/more")
    cluster.wait("clusterrole/admin", lambda held: rules[0] not in held["rules"])


def test_thousands_of_rules_are_aggregated_in_linear_time(cluster: Cluster) -> None:
    group = "/apis/rbac.authorization.k8s.io/v1/clusterroles"

    def seconds(count: int) -> float:
        """CPU time until a role has the rules of another one, which many of its selectors match."""
        label = {f"example.com/of-{count}": "true"}
        rules = [
            {"apiGroups": ["a"], "resources": [f"r{number}"], "verbs": ["get"]} for number in range(count)
        ]
        cluster.request(
            "POST", group, {"metadata": {"name": f"rules-{count}", "labels": label}, "rules": rules}
        )
        aggregated = {"clusterRoleSelectors": [{"matchLabels": label}] * 100}
        started = time.process_time()
        role = {"metadata": {"name": f"all-{count}"}, "aggregationRule": aggregated}
        cluster.request("POST", group, role)
        cluster.wait(f"clusterrole/all-{count}", lambda held: held.get("rules") == rules)
        return time.process_time() - started

    small = max(seconds(500), 0.05)
    assert seconds(4_000) < 64 * small  # minutes if it is quadratic


def test_quota_status_counts_usage(cluster: Cluster) -> None:
    hard = {"pods": "2", "requests.cpu": "1", "count/configmaps": "10"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}}
    cluster.load(quota)
    cluster.wait(
        "quota/q",
        lambda held: (
            held["status"].get("used") == {**hard, "pods": "0", "requests.cpu": "0", "count/configmaps": "1"}
        ),
    )
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "250m"}}}
    for name in ("a", "b"):
        pod = {"metadata": {"name": name}, "spec": {"containers": [container]}}
        cluster.request("POST", "/api/v1/namespaces/default/pods", pod)
    cluster.wait("quota/q", lambda held: held["status"]["used"]["requests.cpu"] == "500m")
    pod = {"metadata": {"name": "c"}, "spec": {"containers": [container]}}
    with pytest.raises(Refused, match="exceeded quota"):
        cluster.request("POST", "/api/v1/namespaces/default/pods", pod)
    cluster.delete("pod/a")
    cluster.wait("quota/q", lambda held: held["status"]["used"]["pods"] == "1")
    cluster.request("POST", "/api/v1/namespaces/default/pods", pod)


def test_disruption_budget_counts_healthy_pods(cluster: Cluster) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
    }
    cluster.load(budget)
    cluster.wait("pdb/b", lambda held: held["status"].get("observedGeneration") == 1)
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    for name in ("one", "two"):
        pod = {"metadata": {"name": name, "labels": {"app": "x"}}, "spec": POD}
        cluster.request("POST", "/api/v1/namespaces/default/pods", pod)
        cluster.request("PATCH", f"/api/v1/namespaces/default/pods/{name}/status", ready, MERGE)
    status = cluster.wait("pdb/b", "DisruptionAllowed")["status"]
    counted = {
        name: status[name]
        for name in ("currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed")
    }
    assert counted == {"currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2, "disruptionsAllowed": 1}
    cluster.request("POST", "/api/v1/namespaces/default/pods/one/eviction", {"metadata": {"name": "one"}})
    cluster.wait("pdb/b", lambda held: held["status"]["disruptionsAllowed"] == 0)
    with pytest.raises(Refused) as refusal:
        cluster.request("POST", "/api/v1/namespaces/default/pods/two/eviction", {"metadata": {"name": "two"}})
    assert refusal.value.code == 429


def test_claim_in_use_is_kept_until_its_pod_is_deleted(cluster: Cluster) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}},
    }
    cluster.load(claim)
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    pod = {"metadata": {"name": "p"}, "spec": {**POD, "volumes": volumes}}
    cluster.request("POST", "/api/v1/namespaces/default/pods", pod)
    cluster.delete("pvc/c")
    time.sleep(0.05)
    assert "deletionTimestamp" in cluster.get("pvc/c")["metadata"]
    cluster.delete("pod/p")
    cluster.wait("pvc/c", "delete")


def test_pod_on_missing_node_is_deleted_after_its_grace_period(cluster: Cluster) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {**POD, "nodeName": "nowhere"}}
    cluster.request("POST", "/api/v1/namespaces/default/pods", pod)
    cluster.delete("pod/p", gracePeriodSeconds=1)
    assert "deletionTimestamp" in cluster.get("pod/p")["metadata"]
    cluster.wait("pod/p", "delete", timeout=5)


def certificate_request(name: str, usages: list[str], signer: str, **subject: str) -> dict[str, Any]:
    key = ec.generate_private_key(ec.SECP256R1())
    oids = {"CN": NameOID.COMMON_NAME, "O": NameOID.ORGANIZATION_NAME}
    builder = x509.CertificateSigningRequestBuilder().subject_name(
        x509.Name([x509.NameAttribute(oids[part], value) for part, value in subject.items()])
    )
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    spec = {"request": base64.b64encode(pem).decode(), "signerName": signer, "usages": usages}
    return {"metadata": {"name": name}, "spec": spec}


def approve(cluster: Cluster, name: str) -> None:
    path = f"/apis/certificates.k8s.io/v1/certificatesigningrequests/{name}"
    held = cluster.request("GET", path)
    held["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "Test"}]}
    cluster.request("PUT", f"{path}/approval", held)


def test_approved_certificate_requests_are_signed(cluster: Cluster) -> None:
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    signer = "kubernetes.io/kube-apiserver-client"
    cluster.request("POST", path, certificate_request("good", ["client auth"], signer, CN="jane", O="devs"))
    approve(cluster, "good")
    signed = cluster.wait("csr/good", lambda held: "certificate" in held["status"])["status"]["certificate"]
    certificate = x509.load_pem_x509_certificate(base64.b64decode(signed))
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(cluster.ca.read_bytes()))
    assert certificate.subject.rfc4514_string() in ("O=devs,CN=jane", "CN=jane,O=devs")


def test_request_that_violates_signer_rules_fails(cluster: Cluster) -> None:
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    signer = "kubernetes.io/kube-apiserver-client"
    cluster.request("POST", path, certificate_request("bad", ["server auth"], signer, CN="jane"))
    approve(cluster, "bad")
    assert "certificate" not in cluster.wait("csr/bad", "Failed")["status"]


def test_finished_job_is_deleted_after_its_ttl(cluster: Cluster) -> None:
    template = {"spec": {**POD, "restartPolicy": "Never"}}
    job = {"metadata": {"name": "j"}, "spec": {"ttlSecondsAfterFinished": 0, "template": template}}
    cluster.request("POST", "/apis/batch/v1/namespaces/default/jobs", job)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 2))
    done = {"status": "True", "lastTransitionTime": now}
    status = {
        "startTime": now,
        "completionTime": now,
        "succeeded": 1,
        "conditions": [{"type": "SuccessCriteriaMet", **done}, {"type": "Complete", **done}],
    }
    cluster.request("PATCH", "/apis/batch/v1/namespaces/default/jobs/j/status", {"status": status}, MERGE)
    cluster.wait("job/j", "delete")
