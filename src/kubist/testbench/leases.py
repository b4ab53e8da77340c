"""Takes over a leader-election Lease, as another instance of the same controller would."""

from __future__ import annotations

from kubist.api.application import API
from kubist.model.meta import status, times
from kubist.model.meta.object import Object

GROUP = "coordination.k8s.io"


async def take_lease(api: API, namespace: str, name: str, holder: str, duration: int) -> None:
    """Makes `holder` the holder of a Lease for `duration` seconds. Creates the Lease if it does not exist."""
    now = times.format_micro_time(*divmod(int(api.clock.now() * 1e6), 10**6))
    taken = {
        "holderIdentity": holder,
        "leaseDurationSeconds": duration,
        "acquireTime": now,
        "renewTime": now,
    }

    def change(lease: Object) -> Object:
        spec = lease.setdefault("spec", {})
        spec.update(taken)
        spec["leaseTransitions"] = spec.get("leaseTransitions", 0) + 1
        return lease

    try:
        await api.cluster.mutate("leases", name, namespace, change, group=GROUP)
    except status.APIError as error:
        if error.code != 404:
            raise
        lease = {"metadata": {"name": name, "namespace": namespace}, "spec": {**taken, "leaseTransitions": 0}}
        await api.cluster.create("leases", lease, namespace, group=GROUP)
