"""Workload controllers of kube-controller-manager (`serve --workloads`)."""

from __future__ import annotations

from kubist.cluster.control.loop import Loop
from kubist.cluster.control.workloads.cronjob import CronJobs
from kubist.cluster.control.workloads.daemonset import DaemonSets
from kubist.cluster.control.workloads.deployment import Deployments
from kubist.cluster.control.workloads.endpoints import ServiceEndpoints, ServiceSlices
from kubist.cluster.control.workloads.endpointslice_mirroring import EndpointSliceMirroring
from kubist.cluster.control.workloads.ephemeral_volume import EphemeralVolumes
from kubist.cluster.control.workloads.horizontalpodautoscaler import HorizontalPodAutoscalers
from kubist.cluster.control.workloads.job import Jobs
from kubist.cluster.control.workloads.load_balancer import LoadBalancers
from kubist.cluster.control.workloads.persistentvolume_binder import Volumes
from kubist.cluster.control.workloads.replicaset import ReplicaSets, ReplicationControllers
from kubist.cluster.control.workloads.statefulset import StatefulSets


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
