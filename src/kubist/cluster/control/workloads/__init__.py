"""Workload controllers of kube-controller-manager (`serve --workloads`)."""

from __future__ import annotations

from kubist.cluster.control.loop import Loop
from kubist.cluster.control.workloads.cronjobs import CronJobs
from kubist.cluster.control.workloads.daemonsets import DaemonSets
from kubist.cluster.control.workloads.deployments import Deployments
from kubist.cluster.control.workloads.endpoints import ServiceEndpoints, ServiceSlices
from kubist.cluster.control.workloads.ephemeralvolumes import EphemeralVolumes
from kubist.cluster.control.workloads.horizontalpodautoscaler import HorizontalPodAutoscalers
from kubist.cluster.control.workloads.jobs import Jobs
from kubist.cluster.control.workloads.loadbalancers import LoadBalancers
from kubist.cluster.control.workloads.mirroring import EndpointSliceMirroring
from kubist.cluster.control.workloads.replicasets import ReplicaSets, ReplicationControllers
from kubist.cluster.control.workloads.statefulsets import StatefulSets
from kubist.cluster.control.workloads.volumes import Volumes


def loops() -> list[type[Loop]]:
    return [
        ReplicaSets,
        ReplicationControllers,
        Deployments,
        StatefulSets,
        DaemonSets,
        Jobs,
        CronJobs,
        HorizontalPodAutoscalers,
        ServiceEndpoints,
        ServiceSlices,
        EndpointSliceMirroring,
        LoadBalancers,
        Volumes,
        EphemeralVolumes,
    ]
