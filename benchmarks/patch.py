"""Cost of patches and managed fields on a pod of about 3 KB, in microseconds each.

python benchmarks/patch.py
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from typing import Any

import orjson

from kubist.model.patch import jsonpatch, merge, strategic
from kubist.model.patch.apply import apply, update_managed_fields
from kubist.model.schema.catalog import schema_for
from kubist.model.schema.decode import decode

POD = schema_for("", "v1", "Pod")
NOW = "2026-01-01T00:00:00Z"


def pod() -> dict[str, Any]:
    """A pod as it is when owners are determined: decoded and defaulted."""
    container = {
        "name": "main",
        "image": "registry.example/app:1",
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": f"VAR_{n}", "value": f"value-of-variable-{n}-{n}"} for n in range(12)],
        "resources": {"limits": {"memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    spec = {
        "containers": [container],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "nodeSelector": {"disk": "ssd"},
        "automountServiceAccountToken": False,
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
    }
    labels = {"app": "app-1", "tier": "t1"}
    metadata = {
        "name": "pod-000001",
        "namespace": "bench",
        "labels": labels,
        "annotations": {"note": "first"},
    }
    sent = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    decoded: dict[str, Any] = decode(POD, sent)
    return decoded


def own(live: dict[str, Any] | None, new: dict[str, Any]) -> None:
    update_managed_fields(POD, live, new, manager="me", api_version="v1", reset_fields=("status",), now=NOW)


def main() -> None:
    fresh = pod()
    live = pod()
    own(None, live)
    live["metadata"]["uid"] = "9f0a2c1e-6f0d-4b7e-9a53-2f1d3c4b5a69"
    stored = orjson.dumps(live)
    labels = {"metadata": {"labels": {"round": "1"}}}
    labelled = merge.apply(live, labels)
    operations = jsonpatch.operations([{"op": "add", "path": "/metadata/labels/round", "value": "1"}])
    config = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod-000001", "annotations": {"a": "1"}},
    }
    applied = apply(POD, live, config, manager="other", api_version="v1", now=NOW)
    again = {**config, "metadata": {"name": "pod-000001", "annotations": {"a": "2"}}}
    other = orjson.loads(orjson.dumps(labelled))

    def create() -> None:
        fresh["metadata"].pop("managedFields", None)
        own(None, fresh)

    def patch(new: dict[str, Any]) -> Callable[[], None]:
        entries = new["metadata"]["managedFields"]

        def run() -> None:
            new["metadata"]["managedFields"] = entries
            own(live, new)

        return run

    print(f"a pod of {len(stored)} bytes")
    report("JSON patch of a label", lambda: jsonpatch.apply(live, operations))
    report("merge patch of a label", lambda: merge.apply(live, labels))
    report("strategic merge patch of a label", lambda: strategic.apply(live, labels, POD))
    report("owners after a create", create)
    report("owners after a label patch, parts shared", patch(labelled))
    report("owners after a label patch, nothing shared", patch(other))
    report("apply an annotation", lambda: apply(POD, live, config, manager="b", api_version="v1", now=NOW))
    report(
        "apply an annotation again, changed",
        lambda: apply(POD, applied, again, manager="other", api_version="v1", now=NOW),
    )


def report(what: str, run: Callable[[], Any], number: int = 200) -> None:
    best = min(timeit.repeat(run, timer=time.process_time, number=number, repeat=50)) / number
    print(f"{what:45} {best * 1e6:8.1f} µs")


if __name__ == "__main__":
    main()
