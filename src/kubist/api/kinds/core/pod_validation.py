"""Validation of a whole Pod: metadata, spec, and the rules that do not apply to templates."""

from __future__ import annotations

from collections.abc import Callable

from kubist.api.kinds.core.podspec.annotations import validate_pod_annotations
from kubist.api.kinds.core.podspec.containers import validate_images_padding
from kubist.api.kinds.core.podspec.options import CURRENT, Options
from kubist.api.kinds.core.podspec.profiles import validate_profiles_match
from kubist.api.kinds.core.podspec.spec import validate_pod_spec
from kubist.api.kinds.core.podspec.tolerated import options_for_update
from kubist.api.resources.strategy import Errors
from kubist.model.meta import names, objectmeta
from kubist.model.meta.fields import forbidden
from kubist.model.meta.object import Object


def validate_new(pod: Object, *, allow_privileged: bool) -> Errors:
    """Validates a created pod. The verb validates its metadata."""
    spec = pod["spec"]
    annotations = pod["metadata"].get("annotations") or {}
    errors = _validate_pod(pod, CURRENT[True, allow_privileged])
    if spec.get("ephemeralContainers"):
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if "schedulingGates" in spec and spec["schedulingGates"] and spec.get("nodeName"):
        why = "cannot be set until all schedulingGates have been cleared"
        errors.append(forbidden("spec.nodeName", why))
    if annotations:
        errors += validate_profiles_match(annotations, spec, "spec")
    return errors


def validate_again(pod: Object, options: Options) -> Errors:
    """Validates an updated pod as a whole, including its metadata."""
    errors = objectmeta.validate_create(pod["metadata"], namespaced=True, validate_name=names.dns_subdomain)
    return errors + _validate_pod(pod, options)


def validate_metadata_again(pod: Object, options: Options) -> Errors:
    """Validates only the metadata part of `validate_again`."""
    meta = pod["metadata"]
    errors = objectmeta.validate_create(meta, namespaced=True, validate_name=names.dns_subdomain)
    annotations = meta.get("annotations")
    if annotations:
        errors += validate_pod_annotations(annotations, pod["spec"], "metadata.annotations", options)
    return errors


def validate_with_exceptions(
    validate: Callable[[Object, Object, Options], Errors], new: Object, old: Object, *, allow_privileged: bool
) -> Errors:
    """Validates an update with the current rules. If there are errors, validates again with the exceptions that `old`
    needs."""
    errors = validate(new, old, CURRENT[True, allow_privileged])
    if errors:
        errors = validate(new, old, options_for_update(old, is_pod=True, allow_privileged=allow_privileged))
    return errors


def _validate_pod(pod: Object, options: Options) -> Errors:
    meta, spec = pod["metadata"], pod["spec"]
    errors: Errors = []
    annotations = meta.get("annotations")
    if annotations:
        errors += validate_pod_annotations(annotations, spec, "metadata.annotations", options)
    errors += validate_pod_spec(spec, meta, "spec", options)
    if "volumes" in spec and not spec.get("serviceAccountName"):
        errors += [
            forbidden(
                f"spec.volumes[{index}].projected.sources[{position}].serviceAccountToken",
                "must not be specified when serviceAccountName is not set",
            )
            for index, volume in enumerate(spec.get("volumes") or ())
            if "projected" in volume
            for position, source in enumerate(volume["projected"].get("sources") or ())
            if "serviceAccountToken" in source
        ]
    for field in ("containers", "initContainers"):
        if field in spec:
            errors += validate_images_padding(spec[field], f"spec.{field}")
    return errors
