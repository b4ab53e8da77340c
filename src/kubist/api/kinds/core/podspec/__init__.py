"""PodSpec in a Pod, a PodTemplate or the template of a workload.

The modules of this package define the defaults, validation and warnings of each part once. Kinds with a template import
the functions for whole templates from here.
"""

from __future__ import annotations

from kubist.api.kinds.core.podspec.annotations import validate_pod_annotations
from kubist.api.kinds.core.podspec.defaults import default_pod_spec, default_pod_template
from kubist.api.kinds.core.podspec.options import CURRENT, Options
from kubist.api.kinds.core.podspec.profiles import validate_profiles_match
from kubist.api.kinds.core.podspec.spec import validate_pod_spec
from kubist.api.kinds.core.podspec.tolerated import options_for_update
from kubist.api.kinds.core.podspec.visit import FIELDS, containers_of
from kubist.api.kinds.core.podspec.warnings import pod_spec_warnings
from kubist.model.meta import objectmeta
from kubist.model.meta.fields import FieldError, forbidden
from kubist.model.meta.object import Object

__all__ = [
    "default_pod_spec",
    "default_pod_template",
    "drop_disabled_fields",
    "drop_disabled_status_fields",
    "drop_disabled_template_fields",
    "template_warnings",
    "validate_pod_template",
]

Errors = list[FieldError]
_PROJECTIONS = ("clusterTrustBundle", "podCertificate")


def validate_pod_template(
    template: Object, path: str, old: Object | None = None, *, allow_privileged: bool = True
) -> Errors:
    """Errors of a template. Errors that `old`, the stored template, already has are tolerated where compatibility
    requires it. `allow_privileged` is the server's setting."""
    errors = _validate(template, path, CURRENT[False, allow_privileged])
    if errors and old is not None:
        options = options_for_update(old, is_pod=False, allow_privileged=allow_privileged)
        errors = _validate(template, path, options)
    return errors


def _validate(template: Object, path: str, options: Options) -> Errors:
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    errors = objectmeta.validate_labels(labels, f"{path}.labels")
    if annotations:
        errors += objectmeta.validate_annotations(annotations, f"{path}.annotations")
        errors += validate_pod_annotations(annotations, spec, f"{path}.annotations", options)
    errors += validate_pod_spec(spec, None, f"{path}.spec", options)
    if annotations:
        errors += validate_profiles_match(annotations, spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        why = "ephemeral containers not allowed in pod template"
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", why))
    return errors


def template_warnings(template: Object | None, path: str) -> list[str]:
    """Warnings for a template."""
    if template is None:
        return []
    return pod_spec_warnings(template.get("spec") or {}, template.get("metadata") or {}, path)


def drop_disabled_template_fields(template: Object | None, old: Object | None = None) -> None:
    """Removes fields whose feature gate is off, unless the `old` template has them."""
    if template is not None:
        drop_disabled_fields(template.get("spec") or {}, (old or {}).get("spec"))


# Fields whose feature gate is off. Those that the stored object already has are kept.


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
