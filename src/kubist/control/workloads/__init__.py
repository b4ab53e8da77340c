"""Workload controllers of kube-controller-manager (`serve --workloads`)."""

from __future__ import annotations

from kubist.control.loop import Loop
from kubist.control.workloads.cronjobs import CronJobs
from kubist.control.workloads.daemonsets import DaemonSets
from kubist.control.workloads.deployments import Deployments
from kubist.control.workloads.endpoints import ServiceEndpoints, ServiceSlices
from kubist.control.workloads.ephemeralvolumes import EphemeralVolumes
from kubist.control.workloads.horizontalpodautoscaler import HorizontalPodAutoscalers
from kubist.control.workloads.jobs import Jobs
from kubist.control.workloads.loadbalancers import LoadBalancers
from kubist.control.workloads.mirroring import EndpointSliceMirroring
from kubist.control.workloads.replicasets import ReplicaSets, ReplicationControllers
from kubist.control.workloads.statefulsets import StatefulSets
from kubist.control.workloads.volumes import Volumes


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
