"""Validation of pod annotations that have a meaning to the system."""

from __future__ import annotations

import re

import orjson

from kubist.api.kinds.core.podspec.options import Options
from kubist.api.kinds.core.podspec.profiles import (
    APP_ARMOR_CONTAINER,
    PROFILES,
    validate_profile_annotations,
)
from kubist.api.kinds.core.podspec.scheduling import validate_tolerations
from kubist.model.meta.fields import FieldError, forbidden, invalid
from kubist.model.meta.numerals import decimal
from kubist.model.meta.object import Object

Errors = list[FieldError]
Annotations = dict[str, str]

MIRROR_POD = "kubernetes.io/config.mirror"
_TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
_SETTLED = (APP_ARMOR_CONTAINER, MIRROR_POD)
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_MEANT_FOR_PODS = (*_SETTLED, _TOLERATIONS, _DELETION_COST, *PROFILES)
_is_cost = re.compile("0|-[0-9]+|[1-9][0-9]*").fullmatch


def validate_pod_annotations(annotations: Annotations, spec: Object, path: str, options: Options) -> Errors:
    errors: Errors = []
    if not _are_for_pods(annotations):
        return errors
    if MIRROR_POD in annotations and not spec.get("nodeName"):
        why = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid(f"{path}[{MIRROR_POD}]", annotations[MIRROR_POD], why))
    if annotations.get(_TOLERATIONS):
        errors += _tolerations(annotations[_TOLERATIONS], path)
    if not options.invalid_deletion_cost and _is_bad_cost(annotations):
        cost = annotations[_DELETION_COST]
        errors.append(invalid(f"{path}[{_DELETION_COST}]", cost, "must be a 32bit integer"))
    return errors + validate_profile_annotations(annotations, spec, path)


def _are_for_pods(annotations: Annotations) -> bool:
    """Whether any annotation needs validation. Most pods have none."""
    for key in annotations:  # noqa: SIM110 -- every write of a pod asks this
        if key.startswith(_MEANT_FOR_PODS):
            return True
    return False


def _tolerations(text: str, path: str) -> Errors:
    try:
        tolerations = orjson.loads(text)
    except orjson.JSONDecodeError:
        why = f"invalid character '{text[0]}' looking for beginning of value"
        return [invalid(path, _TOLERATIONS, why)]
    if not isinstance(tolerations, list) or not all(isinstance(item, dict) for item in tolerations):
        why = "json: cannot unmarshal number into Go value of type []core.Toleration"
        return [invalid(path, _TOLERATIONS, why)]
    return validate_tolerations(tolerations, f"{path}.{_TOLERATIONS}")


def _is_bad_cost(annotations: Annotations) -> bool:
    cost = annotations.get(_DELETION_COST)
    return cost is not None and not (_is_cost(cost) and -(1 << 31) <= decimal(cost) < 1 << 31)


def has_invalid_deletion_cost(meta: Object) -> bool:
    return _is_bad_cost(meta.get("annotations") or {})


def validate_annotations_update(new: Annotations, old: Annotations, path: str) -> Errors:
    """Rejects changes of annotations that are fixed when the pod is created."""
    if new == old or not any(key.startswith(_SETTLED) for key, _ in new.items() ^ old.items()):
        return []
    errors: Errors = []
    for key in sorted(old):
        if new.get(key) != old[key]:
            if key.startswith(APP_ARMOR_CONTAINER):
                errors.append(forbidden(f"{path}[{key}]", "may not remove or update AppArmor annotations"))
            if key == MIRROR_POD:
                errors.append(forbidden(f"{path}[{key}]", "may not remove or update mirror pod annotation"))
    for key in sorted(new.keys() - old.keys()):
        if key.startswith(APP_ARMOR_CONTAINER):
            errors.append(forbidden(f"{path}[{key}]", "may not add AppArmor annotations"))
        if key == MIRROR_POD:
            errors.append(forbidden(f"{path}[{key}]", "may not add mirror pod annotation"))
    return errors
