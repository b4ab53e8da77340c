"""Columns of the kinds of group apps."""

from __future__ import annotations

from dataclasses import replace

from kubist.api.tables.cells import CONTAINERS, NONE, REPLICAS, SELECTOR, labels
from kubist.api.tables.columns import AGE, NAME, Column, Table, number, part
from kubist.model.meta.object import Object
from kubist.model.meta.selectors import format_label_selector


def _ready(obj: Object) -> str:
    return f"{part(obj, 'status').get('readyReplicas', 0)}/{part(obj, 'spec').get('replicas', 0)}"


def _selector(deployment: Object) -> str:
    try:
        return format_label_selector(part(deployment, "spec").get("selector"))
    except ValueError:
        return "<invalid>"


def _node_selector(daemon_set: Object) -> str:
    return labels(part(daemon_set, "spec", "template", "spec").get("nodeSelector"))


def _controller(revision: Object) -> str:
    for owner in revision["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group = owner.get("apiVersion", "").rpartition("/")[0]
            kind = f"{owner.get('kind', '')}.{group}" if group else owner.get("kind", "")
            return f"{kind.lower()}/{owner.get('name', '')}"
    return NONE


_READY = Column("Ready", "Number of ready pods and of desired pods.", cell=_ready)
TABLES = {
    "Deployment": Table(
        NAME,
        _READY,
        Column(
            "Up-to-date", "Number of pods of the newest template.", path="status.updatedReplicas", absent=0
        ),
        Column(
            "Available",
            "Number of pods that have been ready for minReadySeconds.",
            path="status.availableReplicas",
            absent=0,
        ),
        AGE,
        *CONTAINERS,
        replace(SELECTOR, cell=_selector),
    ),
    "ReplicaSet": Table(NAME, *REPLICAS, AGE, *CONTAINERS, SELECTOR),
    "StatefulSet": Table(NAME, _READY, AGE, *CONTAINERS),
    "DaemonSet": Table(
        NAME,
        number("Desired", "Number of nodes that should run the pod.", path="status.desiredNumberScheduled"),
        number("Current", "Number of these nodes that run the pod.", path="status.currentNumberScheduled"),
        number("Ready", "Number of nodes with a ready pod.", path="status.numberReady"),
        number(
            "Up-to-date",
            "Number of nodes with a pod of the newest template.",
            path="status.updatedNumberScheduled",
        ),
        number(
            "Available",
            "Number of nodes with a pod that has been ready for minReadySeconds.",
            path="status.numberAvailable",
        ),
        Column("Node Selector", "Labels of the nodes that should run the pod.", cell=_node_selector),
        AGE,
        *CONTAINERS,
        SELECTOR,
    ),
    "ControllerRevision": Table(
        NAME,
        Column("Controller", "Object that the revision belongs to.", cell=_controller),
        Column("Revision", "Number of the revision.", path="revision", absent=0),
        AGE,
    ),
}
