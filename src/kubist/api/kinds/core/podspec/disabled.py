"""Drops fields whose feature gate is off. Fields that the stored object already has are kept."""

from __future__ import annotations

from kubist.api.kinds.core.podspec.visit import FIELDS, containers_of
from kubist.model.meta.object import Object

_PROJECTIONS = ("clusterTrustBundle", "podCertificate")


def drop_disabled_fields(spec: Object, old: Object | None = None) -> None:
    """Drops disabled fields of a PodSpec."""
    if "schedulingGroup" in spec and "schedulingGroup" not in (old or {}):
        del spec["schedulingGroup"]
    if "volumes" in spec:
        for volume in spec["volumes"] or ():
            if "projected" in volume:
                for source in volume["projected"].get("sources") or ():
                    for field in _PROJECTIONS:
                        if field in source and not _projects(old, field):
                            del source[field]
    for field in FIELDS:
        if field in spec:
            for container in spec[field] or ():
                if "lifecycle" in container:
                    _drop_stop_signal(container, old)


def _drop_stop_signal(container: Object, old: Object | None) -> None:
    if "stopSignal" in (container["lifecycle"] or {}) and not _has_stop_signals(old):
        del container["lifecycle"]["stopSignal"]
        if not container["lifecycle"]:
            del container["lifecycle"]


def _projects(spec: Object | None, field: str) -> bool:
    return any(
        field in source
        for volume in (spec or {}).get("volumes") or ()
        for source in (volume.get("projected") or {}).get("sources") or ()
    )


def _has_stop_signals(spec: Object | None) -> bool:
    return any("stopSignal" in (container.get("lifecycle") or {}) for container in containers_of(spec or {}))


def drop_disabled_status_fields(status: Object, old: Object | None = None) -> None:
    """Drops disabled fields of a PodStatus."""
    field = "nodeAllocatableResourceClaimStatuses"
    if field in status and field not in (old or {}):
        del status[field]
    if _has_volume_statuses(old or {}):
        return
    for mount in _mount_statuses(status):
        mount.pop("volumeStatus", None)


def _mount_statuses(status: Object) -> list[Object]:
    return [
        mount
        for field in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
        for container in status.get(field) or ()
        for mount in container.get("volumeMounts") or ()
    ]


def _has_volume_statuses(status: Object) -> bool:
    return any("volumeStatus" in mount for mount in _mount_statuses(status))
