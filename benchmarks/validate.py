"""Time of `kubist validate` on many manifests of mixed kinds, one object in each file.

python benchmarks/validate.py            # 3,000 files
python benchmarks/validate.py 10000
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]
GROUP = "bench.example.com"
CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"widgets.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"low": {"type": "integer"}, "high": {"type": "integer"}},
                                "x-kubernetes-validations": [{"rule": "self.low <= self.high"}],
                            }
                        },
                    }
                },
            }
        ],
    },
}


def template(name: str) -> Object:
    container = {
        "name": "main",
        "image": f"registry.example/{name}:1.2.3",
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [{"name": f"SETTING_{number}", "value": f"value-{number}"} for number in range(8)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
    }
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}


def manifest(number: int) -> Object:
    """An object of one of six kinds, in one of twenty namespaces."""
    name = f"object-{number}"
    metadata = {"name": name, "namespace": f"team-{number % 20}", "labels": {"app": name}}
    selector = {"matchLabels": {"app": name}}
    kinds: list[Object] = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "spec": {"selector": selector, "template": template(name)},
        },
        {"apiVersion": "v1", "kind": "Service", "spec": {"selector": {"app": name}, "ports": [{"port": 80}]}},
        {"apiVersion": "v1", "kind": "ConfigMap", "data": {f"key-{key}": "value " * 20 for key in range(10)}},
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": template(name)}}},
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}],
        },
        {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "spec": {"low": number, "high": number + 1}},
    ]
    made = kinds[number % len(kinds)]
    if made["kind"] == "CronJob":
        made["spec"]["jobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    return {"apiVersion": made.pop("apiVersion"), "kind": made.pop("kind"), "metadata": metadata, **made}


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "crd.yaml").write_text(yaml.safe_dump(CRD))
        size = 0
        for number in range(count):
            text = yaml.safe_dump(manifest(number), sort_keys=False)
            size += len(text)
            (Path(directory) / f"{number}.yaml").write_text(text)
        for arguments in ([], ["--pod-templates=false"]):
            command = [sys.executable, "-m", "kubist", "validate", directory, *arguments]
            before, began = os.times(), time.perf_counter()
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            wall, after = time.perf_counter() - began, os.times()
            cpu = after.children_user + after.children_system - before.children_user - before.children_system
            print(
                f"{' '.join(['kubist validate', *arguments])}: {done.stdout.splitlines()[-1]}, exit {done.returncode}"
            )
            print(
                f"  {size / 1e6:.1f} MB of YAML, {wall:.2f} s wall, {cpu:.2f} s CPU, {count / wall:.0f} files/s"
            )


if __name__ == "__main__":
    main()
