"""Simulated kube-scheduler: assigns pods to nodes, or reports why it cannot.

`pod_info` reads the requirements of a pod. `snapshot` keeps nodes and assigned pods, updated from the watch. `cycle`
checks one pod against the nodes, with the rules in `control.node_fit`, `pod_affinity`, `spread` and `volumes`, and
chooses among the nodes that fit. `preemption` looks for pods to evict. All of these are functions of a snapshot. `loop`
follows the objects and keeps unschedulable pods, and `writes` changes objects.
"""

from __future__ import annotations

from kubist.cluster.simulation.scheduler.loop import Scheduler

__all__ = ["Scheduler"]
