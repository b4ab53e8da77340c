"""Users of the simulated components."""

from __future__ import annotations

from kubist.api.object_client import Actor
from kubist.api.resources.context import User

_MASTERS = ("system:masters", "system:authenticated")
SCHEDULER = Actor(User("system:kube-scheduler", groups=_MASTERS), "kube-scheduler", admission=True)
KUBELET = Actor(User("system:simulated-kubelet", groups=_MASTERS), "kubelet", admission=True)
STAGES = Actor(User("system:kwok-controller", groups=_MASTERS), "kwok", admission=True)
