"""Validation of pod updates: images, deadline, tolerations and scheduling gates may change."""

from __future__ import annotations

from typing import Any

from kubist.api.kinds.core.pod_validation import validate_again, validate_metadata_again
from kubist.api.kinds.core.podspec.affinity import REQUIRED
from kubist.api.kinds.core.podspec.annotations import validate_annotations_update, validate_pod_annotations
from kubist.api.kinds.core.podspec.containers import validate_images_padding
from kubist.api.kinds.core.podspec.options import Options
from kubist.api.kinds.core.podspec.resources import same
from kubist.api.kinds.core.podspec.scheduling import validate_tolerations
from kubist.api.kinds.core.podspec.security import is_privileged
from kubist.api.resources.strategy import Errors
from kubist.model.meta import objectmeta
from kubist.model.meta.fields import forbidden, invalid, required
from kubist.model.meta.object import Object
from kubist.model.schema.internals import difference

_MAX_INT32 = (1 << 31) - 1
_UPDATABLE = ",".join(
    (
        "`spec.containers[*].image`",
        "`spec.initContainers[*].image`",
        "`spec.activeDeadlineSeconds`",
        "`spec.tolerations` (only additions to existing tolerations)",
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    )
)


def validate_update(new: Object, old: Object, options: Options) -> Errors:
    spec, old_spec = new["spec"], old["spec"]
    if (spec is old_spec or spec == old_spec) and not _depends(spec, options):
        # The stored spec passed validation, and most updates of pods do not change the spec.
        return _validate_metadata(new, old, options)
    errors = objectmeta.validate_update(new["metadata"], old["metadata"])
    errors += validate_again(new, options)
    errors += validate_annotations(new, old, options)
    for field in ("containers", "initContainers"):
        containers, before = spec.get(field) or [], old_spec.get(field) or []
        if len(containers) != len(before):
            return [*errors, forbidden(f"spec.{field}", "pod updates may not add or remove containers")]
        for index, container in enumerate(containers):
            if not container.get("image"):
                errors.append(required(f"spec.{field}[{index}].image"))
            errors += validate_images_padding([container], f"spec.{field}", first=index)
    limit_errors, stop = _deadline(spec.get("activeDeadlineSeconds"), old_spec.get("activeDeadlineSeconds"))
    errors += limit_errors
    if stop:
        return errors
    errors += _tolerations(spec.get("tolerations") or [], old_spec.get("tolerations") or [])
    errors += _gates(spec.get("schedulingGates") or [], old_spec.get("schedulingGates") or [])
    if spec == old_spec:
        return errors
    masked = _masked(spec, old_spec)
    if old_spec.get("schedulingGates"):
        errors += _gated(masked, old_spec)
    if not same(masked, old_spec):
        changed = difference("core.PodSpec", old_spec, masked)
        why = f"pod updates may not change fields other than {_UPDATABLE}\n{changed}"
        errors.append(forbidden("spec", why))
    return errors


def _validate_metadata(new: Object, old: Object, options: Options) -> Errors:
    """Validates an update that does not change the spec. If the metadata is valid, only its change is checked."""
    meta, before = new["metadata"], old["metadata"]
    errors = validate_metadata_again(new, options)
    if errors:
        errors = objectmeta.validate_update(meta, before) + errors
        return errors + validate_annotations(new, old, options)
    annotations, old_annotations = meta.get("annotations") or {}, before.get("annotations") or {}
    errors = objectmeta.validate_change(meta, before)
    return errors + validate_annotations_update(annotations, old_annotations, "metadata.annotations")


def _depends(spec: Object, options: Options) -> bool:
    """Whether the rules for the spec depend on more than the spec: claims depend on annotations, privileged containers
    on the server's configuration."""
    return "resourceClaims" in spec or (not options.allow_privileged and is_privileged(spec))


def validate_annotations(new: Object, old: Object, options: Options) -> Errors:
    """Rejects changes of annotations that are fixed at creation, and validates the pod annotations."""
    annotations, before = (pod["metadata"].get("annotations") or {} for pod in (new, old))
    if not annotations and not before:
        return []
    path = "metadata.annotations"
    errors = validate_annotations_update(annotations, before, path)
    return errors + validate_pod_annotations(annotations, new["spec"], path, options)


def _deadline(new: int | None, old: int | None) -> tuple[Errors, bool]:
    """Errors of activeDeadlineSeconds, which may be set or shortened, and whether validation stops after them."""
    path = "spec.activeDeadlineSeconds"
    if new is None:
        why = "must not update from a positive integer to nil value"
        return ([invalid(path, None, why)] if old is not None else []), False
    if not 0 <= new <= _MAX_INT32:
        return [invalid(path, new, f"must be between 0 and {_MAX_INT32}, inclusive")], True
    if old is not None and old < new:
        return [invalid(path, new, "must be less than or equal to previous value")], True
    return [], False


def _tolerations(new: list[Object], old: list[Object]) -> Errors:
    """Validates tolerations: additions are allowed; of existing ones only tolerationSeconds may change."""
    timeless = {_timeless(toleration) for toleration in new}
    if any(_timeless(toleration) not in timeless for toleration in old):
        why = "existing toleration can not be modified except its tolerationSeconds"
        return [forbidden("spec.tolerations", why)]
    return validate_tolerations(new, "spec.tolerations")


def _timeless(toleration: Object) -> frozenset[tuple[str, Any]]:
    return frozenset(item for item in toleration.items() if item[0] != "tolerationSeconds")


def _gates(new: list[Object], old: list[Object]) -> Errors:
    added = {gate.get("name", ""): index for index, gate in enumerate(new)}
    for gate in old:
        added.pop(gate.get("name", ""), None)
    return [
        forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{name}'",
        )
        for name, index in added.items()
    ]


def _masked(spec: Object, old: Object) -> Object:
    """New spec with the old values of all fields that may change."""
    masked = dict(spec)
    for field in ("containers", "initContainers"):
        if field in spec:
            before = old.get(field) or []
            masked[field] = [
                _with(container, "image", before[index].get("image"))
                for index, container in enumerate(spec[field] or ())
            ]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        masked = _with(masked, field, old.get(field))
    grace = old.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0 and masked.get("terminationGracePeriodSeconds") == 1:
        masked["terminationGracePeriodSeconds"] = grace
    return masked


def _with(obj: Object, field: str, value: Any) -> Object:
    changed = {**obj, field: value}
    if value is None:
        del changed[field]
    return changed


def _gated(masked: Object, old: Object) -> Errors:
    """Validates nodeSelector and nodeAffinity of a gated pod, which may only become stricter. Puts the old values
    into `masked`."""
    errors: Errors = []
    selector, before = masked.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    if selector != before:
        if any(selector.get(key) != value for key, value in before.items()):
            why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            errors.append(invalid("spec.nodeSelector", selector, why))
        masked.pop("nodeSelector", None)
        masked.update({"nodeSelector": before} if "nodeSelector" in old else {})
    affinity, old_affinity = masked.get("affinity"), old.get("affinity")
    rules, old_rules = (affinity or {}).get("nodeAffinity"), (old_affinity or {}).get("nodeAffinity")
    if rules != old_rules:
        errors += _node_affinity(rules or {}, old_rules or {})
        if old_affinity is None and not ((affinity or {}).keys() - {"nodeAffinity"}):
            del masked["affinity"]
        else:
            masked["affinity"] = _with(affinity or {}, "nodeAffinity", old_rules)
    return errors


def _node_affinity(new: Object, old: Object) -> Errors:
    path = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    terms = (new.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    before = (old.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    if before and len(before) != len(terms):
        return [
            invalid(path, terms, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        ]
    return [
        invalid(f"{path}[{index}]", terms[index], "only additions are allowed (no mutations or deletions)")
        for index, term in enumerate(before)
        if not _only_adds(terms[index], term)
    ]


def _only_adds(new: Object, old: Object) -> bool:
    """Whether the term only adds requirements. An empty term matches no node, so that additions would match more
    nodes."""
    fields = ("matchExpressions", "matchFields")
    if not any(old.get(field) for field in fields):
        return not any(new.get(field) for field in fields)
    return all(
        (new.get(field) or [])[: len(old.get(field) or [])] == (old.get(field) or []) for field in fields
    )
