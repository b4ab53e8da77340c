"""Environment variables and files of simulated containers."""

from __future__ import annotations

import textwrap

from kubist.testing import Cluster
from tests.simulation.streams.conftest import MakePod
from tests.simulation.streams.upgraded import run


def test_variables_come_from_the_spec_and_from_other_objects(cluster: Cluster, make_pod: MakePod) -> None:
    cluster.load(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "env"}, "data": {"K": "from-map"}},
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "env"},
            "stringData": {"S": "from-secret"},
        },
    )
    name = make_pod(
        env=[
            {"name": "PLAIN", "value": "x"},
            {"name": "JOINED", "value": "$(PLAIN)-$(MISSING)-$$(PLAIN)"},
            {"name": "MAP", "valueFrom": {"configMapKeyRef": {"name": "env", "key": "K"}}},
            {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "env", "key": "S"}}},
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {
                "name": "NONE",
                "valueFrom": {"configMapKeyRef": {"name": "env", "key": "no", "optional": True}},
            },
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu"}}},
        ],
        envFrom=[{"prefix": "P_", "configMapRef": {"name": "env"}}],
        resources={"requests": {"cpu": "250m"}},
    )
    lines = dict(line.split("=", 1) for line in run(cluster, name, "env").out.splitlines())
    expected = {
        "PLAIN": "x",
        "JOINED": "x-$(MISSING)-$(PLAIN)",
        "MAP": "from-map",
        "SECRET": "from-secret",
        "NAME": name,
        "P_K": "from-map",
        "HOSTNAME": name,
    }
    assert {key: lines.get(key) for key in expected} == expected
    assert "NONE" not in lines and lines["KUBERNETES_SERVICE_PORT"] == "443"


def test_volumes_of_config_maps_and_secrets_are_files(cluster: Cluster) -> None:
    cluster.load(
        textwrap.dedent("""
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: files}
        data: {a.conf: "one", b.conf: "two"}
        binaryData: {raw: AAE=}
        ---
        apiVersion: v1
        kind: Secret
        metadata: {name: files}
        stringData: {password: hidden}
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: files, labels: {app: files}}
        spec:
          containers:
          - name: main
            image: app
            volumeMounts:
            - {name: config, mountPath: /etc/config}
            - {name: some, mountPath: /etc/some}
            - {name: config, mountPath: /etc/one.conf, subPath: a.conf}
            - {name: all, mountPath: /etc/all}
          volumes:
          - {name: config, configMap: {name: files}}
          - {name: some, secret: {secretName: files, items: [{key: password, path: sub/pw}]}}
          - name: all
            projected:
              sources:
              - {configMap: {name: files, items: [{key: b.conf, path: b}]}}
              - downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}
        """)
    )
    cluster.wait("pod/files", "Ready", timeout=30)
    script = (
        "ls /etc/config; cat /etc/config/a.conf /etc/some/sub/pw /etc/one.conf /etc/all/b /etc/all/labels"
    )
    ended = run(cluster, "files", "sh", "-c", script)
    assert (ended.out, ended.err) == ('a.conf\nb.conf\nraw\nonehiddenonetwoapp="files"', "")
