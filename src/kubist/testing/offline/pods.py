"""Pods of workloads: the pod that a controller would create from an accepted object."""

from __future__ import annotations

from kubist.model.meta.object import Object
from kubist.testing.offline.server import Identity

_ACCOUNTS = {
    ("", "ReplicationController"): "replication-controller",
    ("apps", "DaemonSet"): "daemon-set-controller",
    ("apps", "Deployment"): "replicaset-controller",
    ("apps", "ReplicaSet"): "replicaset-controller",
    ("apps", "StatefulSet"): "statefulset-controller",
    ("batch", "CronJob"): "job-controller",
    ("batch", "Job"): "job-controller",
}
"""Workload → service account of the controller that creates its pods."""


def pod_of(owner: Object) -> tuple[Object, str, Identity] | None:
    """Pod of a stored workload, the path of its template, and its creator; None if the object is no workload. The pod
    has the owner's name, so that messages are the same in every run."""
    group = owner["apiVersion"].rpartition("/")[0]
    account = _ACCOUNTS.get((group, owner["kind"]))
    if account is None:
        return None
    spec, path = owner["spec"], "spec.template."
    if owner["kind"] == "CronJob":
        spec, path = spec["jobTemplate"]["spec"], "spec.jobTemplate.spec.template."
    # Saves start-up time: many runs check no workloads.
    from kubist.cluster.control.workloads.pods import from_template

    pod = from_template(spec["template"], owner, owner["metadata"]["name"])
    return (
        {"apiVersion": "v1", "kind": "Pod", **pod},
        path,
        Identity(f"system:serviceaccount:kube-system:{account}"),
    )
