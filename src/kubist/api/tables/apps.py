"""Tables of the kinds of group apps."""

from __future__ import annotations

from kubist.api.tables.ages import Cell, age
from kubist.api.tables.columns import AGE, NAME, Column, Table, name_of, number
from kubist.api.tables.shared import (
    CONTAINERS,
    NONE,
    WORKLOAD,
    containers,
    labels,
    part,
    replicated,
    selector,
)
from kubist.model.meta.object import Object
from kubist.model.meta.selectors import format_label_selector


def _template(obj: Object) -> Object:
    found: Object = part(obj, "spec", "template", "spec")
    return found


def _deployment(obj: Object) -> list[Cell]:
    spec, status = part(obj, "spec"), part(obj, "status")
    return [
        name_of(obj),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj),
        *containers(_template(obj)),
        _selector(spec.get("selector")),
    ]


def _selector(value: Object | None) -> str:
    try:
        return format_label_selector(value)
    except ValueError:
        return "<invalid>"


def _replica_set(obj: Object) -> list[Cell]:
    return replicated(obj, selector(part(obj, "spec").get("selector")))


def _stateful_set(obj: Object) -> list[Cell]:
    ready = f"{part(obj, 'status').get('readyReplicas', 0)}/{part(obj, 'spec').get('replicas', 0)}"
    return [name_of(obj), ready, age(obj), *containers(_template(obj))]


_DAEMONS = (
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
)


def _daemon_set(obj: Object) -> list[Cell]:
    status = part(obj, "status")
    return [
        name_of(obj),
        *(status.get(count, 0) for count in _DAEMONS),
        labels(_template(obj).get("nodeSelector")),
        age(obj),
        *containers(_template(obj)),
        selector(part(obj, "spec").get("selector")),
    ]


def _controller_revision(obj: Object) -> list[Cell]:
    return [name_of(obj), _controller(obj), obj.get("revision", 0), age(obj)]


def _controller(obj: Object) -> str:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group = owner.get("apiVersion", "").rpartition("/")[0]
            kind = f"{owner.get('kind', '')}.{group}" if group else owner.get("kind", "")
            return f"{kind.lower()}/{owner.get('name', '')}"
    return NONE


TABLES = {
    "Deployment": Table(
        (
            NAME,
            Column("Ready", "Number of ready pods and of desired pods."),
            Column("Up-to-date", "Number of pods of the newest template."),
            Column("Available", "Number of pods that have been ready for minReadySeconds."),
            AGE,
            *WORKLOAD,
        ),
        _deployment,
    ),
    "ReplicaSet": Table(
        (
            NAME,
            number("Desired", "Number of desired pods."),
            number("Current", "Number of existing pods."),
            number("Ready", "Number of ready pods."),
            AGE,
            *WORKLOAD,
        ),
        _replica_set,
    ),
    "StatefulSet": Table(
        (NAME, Column("Ready", "Number of ready pods and of desired pods."), AGE, *CONTAINERS),
        _stateful_set,
    ),
    "DaemonSet": Table(
        (
            NAME,
            number("Desired", "Number of nodes that should run the pod."),
            number("Current", "Number of these nodes that run the pod."),
            number("Ready", "Number of nodes with a ready pod."),
            number("Up-to-date", "Number of nodes with a pod of the newest template."),
            number("Available", "Number of nodes with a pod that has been ready for minReadySeconds."),
            Column("Node Selector", "Labels of the nodes that should run the pod."),
            AGE,
            *WORKLOAD,
        ),
        _daemon_set,
    ),
    "ControllerRevision": Table(
        (
            NAME,
            Column("Controller", "Object that the revision belongs to."),
            Column("Revision", "Number of the revision."),
            AGE,
        ),
        _controller_revision,
    ),
}
