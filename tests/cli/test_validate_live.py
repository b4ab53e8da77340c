"""`kubist validate --against KUBECONFIG`: updates are checked against the objects of a running server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubist.testing import Cluster
from tests.cli.processes import kubist
from tests.offline.manifests import DEPLOYMENT, POLICY, WIDGETS


@pytest.fixture(scope="module")
def live() -> Iterator[Cluster]:
    with Cluster() as cluster:
        cluster.load(WIDGETS, POLICY)
        cluster.load(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "x"}}},
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "shopper", "namespace": "shop"},
            },
            {
                "apiVersion": "example.com/v1",
                "kind": "Widget",
                "metadata": {"name": "a"},
                "spec": {"size": 3},
            },
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "c"},
                "immutable": True,
                "data": {"a": "b"},
            },
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": "j", "namespace": "shop"},
                "spec": {
                    "template": {
                        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
                    }
                },
            },
        )
        yield cluster


def found(home: Path, text: str, *arguments: str) -> list[tuple[str, str]]:
    """Field and message of every finding."""
    (home / "a.yaml").write_text(text)
    done = kubist("validate", "a.yaml", "--output", "json", *arguments, home=home)
    assert done.stderr == ""
    return [(each["field"], each["message"]) for each in json.loads(done.stdout)["findings"]]


def test_transition_rule_of_a_live_crd(live: Cluster, home: Path) -> None:
    smaller = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {size: 2}}"
    [(field, message)] = found(home, smaller, "--against", str(live.kubeconfig))
    assert field == "spec" and message.endswith("widgets never shrink")
    larger = smaller.replace("size: 2", "size: 4")
    assert found(home, larger, "--against", str(live.kubeconfig)) == []


def test_immutable_fields_of_live_objects(live: Cluster, home: Path) -> None:
    changed = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, immutable: true, data: {a: c}}"
    assert found(home, changed, "--against", str(live.kubeconfig)) == [
        ("data", "Forbidden: field is immutable when `immutable` is set")
    ]


def test_fields_that_the_server_set_are_kept(live: Cluster, home: Path) -> None:
    job = """
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: shop}
spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
"""
    assert found(home, job, "--against", str(live.kubeconfig)) == []


def test_downloaded_object_is_no_conflict(live: Cluster, home: Path) -> None:
    widget = live.get("widget/a")
    del widget["metadata"]["managedFields"]
    assert found(home, json.dumps(widget), "--against", str(live.kubeconfig)) == []
    widget["metadata"]["resourceVersion"] = "1"
    [(_, message)] = found(home, json.dumps(widget), "--against", str(live.kubeconfig))
    assert "the object has been modified" in message


def test_live_policies_service_accounts_and_namespaces_count(live: Cluster, home: Path) -> None:
    deployment = DEPLOYMENT.replace("    spec:\n", "    spec:\n      serviceAccountName: shopper\n")
    [(_, message)] = found(home, deployment, "--against", str(live.kubeconfig), "--strict-namespaces")
    assert message.endswith("denied request: every object needs a team")
    labelled = deployment.replace("  name: web\n", "  name: web\n  labels: {team: x}\n", 1)
    assert found(home, labelled, "--against", str(live.kubeconfig), "--strict-namespaces") == []


def test_rbac_of_the_live_server(live: Cluster, home: Path) -> None:
    live.user("bob", rules=[{"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}])
    secrets = "{apiVersion: v1, kind: Secret, metadata: {name: s, labels: {team: x}}}"
    assert found(home, secrets, "--against", str(live.kubeconfig), "--as", "bob") == []
    [(_, message)] = found(home, secrets, "--against", str(live.kubeconfig), "--as", "eve")
    assert 'User "eve" cannot create resource "secrets"' in message


def test_refused_reads_are_warnings(live: Cluster, home: Path) -> None:
    user = live.user(
        "reader", rules=[{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]
    )
    changed = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, immutable: true, data: {a: c}}"
    messages = [message for _, message in found(home, changed, "--against", str(user.kubeconfig))]
    assert "Forbidden: field is immutable when `immutable` is set" in messages
    assert any("the server refused to show a part of its state" in message for message in messages)


def test_long_lists_are_read_in_pages(live: Cluster, home: Path) -> None:
    for number in range(60):
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": f"account-{number}"}}
        live.load(account)
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: p%d}, spec: {serviceAccountName: account-%d, containers: [%s]}}"
    pods = "\n---\n".join(pod % (number, number, "{name: c, image: i}") for number in range(60))
    assert found(home, pods, "--against", str(live.kubeconfig)) == []


@pytest.mark.parametrize(
    ("user", "server", "message"),
    [
        ({"exec": {"command": "aws"}}, "https://127.0.0.1:1", "Kubist runs no credential plugins"),
        ({"token": "x"}, "https://127.0.0.1:1", "connection refused"),
        ({"token": "wrong"}, "", "Unauthorized"),
        ({"client-certificate-data": "eA=="}, "https://127.0.0.1:1", "is not a kubeconfig"),
    ],
)
def test_unusable_kubeconfig_is_one_line(
    live: Cluster, home: Path, user: dict[str, str], server: str, message: str
) -> None:
    config = live.kubeconfig_document()
    config["users"][0]["user"] = user
    if server:
        config["clusters"][0]["cluster"]["server"] = server
    (home / "kubeconfig").write_text(json.dumps(config))
    (home / "a.yaml").write_text(DEPLOYMENT)
    done = kubist("validate", "a.yaml", "--against", "kubeconfig", home=home)
    assert done.returncode == 2
    assert done.stderr.startswith("kubist: ") and message in done.stderr and done.stderr.count("\n") == 1


def test_context_is_chosen_by_name(live: Cluster, home: Path) -> None:
    config = live.kubeconfig_document()
    config["current-context"] = "none"
    (home / "kubeconfig").write_text(json.dumps(config))
    (home / "a.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: d}}")
    done = kubist("validate", "a.yaml", "--against", "kubeconfig", home=home)
    assert done.returncode == 2 and "its current context has no cluster with a server" in done.stderr
    name = config["contexts"][0]["name"]
    assert (
        kubist("validate", "a.yaml", "--against", "kubeconfig", "--context", name, home=home).returncode == 0
    )
