"""Validation of a pod's volumes: exactly one source each. The rules of each source are in `volumesources`."""

from __future__ import annotations

from kubist.api.kinds.core.podspec.options import Options
from kubist.api.kinds.core.podspec.volumesources import SOURCES
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import names
from kubist.model.meta.fields import FieldError, duplicate, forbidden, invalid, required
from kubist.model.meta.object import Object

Errors = list[FieldError]

_PATHS = {"gcePersistentDisk": "persistentDisk"}
"""Source → its name in error paths, where that differs from the field."""
_CLASHES = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""Source → its name in the error for a second source, where that differs from the field."""


def validate_volumes(
    volumes: list[Object] | None, pod_name: str, path: str, options: Options
) -> tuple[dict[str, Object], Errors]:
    """Valid volumes by name, and the errors of the others. `pod_name` is empty for a template."""
    if not volumes:
        return {}, []
    errors: Errors = []
    valid: dict[str, Object] = {}
    claims = {
        f"{pod_name}-{volume.get('name', '')}" for volume in volumes if pod_name and "ephemeral" in volume
    }
    for index, volume in enumerate(volumes):
        where = f"{path}[{index}]"
        name = volume.get("name", "")
        found = _source(volume, name, pod_name, where, options)
        if not name:
            found.append(required(f"{where}.name"))
        else:
            found += [invalid(f"{where}.name", name, problem) for problem in names.dns_label(name)]
        if name in valid:
            found.append(duplicate(f"{where}.name", name))
        if found:
            errors += found
        else:
            valid[name] = volume
        if claims and "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"].get("claimName", "")
            if claim in claims:
                why = "must not reference a PVC that gets created for an ephemeral volume"
                errors.append(invalid(f"{where}.persistentVolumeClaim.claimName", claim, why))
    return valid, errors


def _source(volume: Object, name: str, pod_name: str, path: str, options: Options) -> Errors:
    given = [source for source in SOURCES if source in volume]
    if not given:
        return [required(path, "must specify a volume type")]
    first = given[0]
    errors = SOURCES[first](volume[first], f"{path}.{_PATHS.get(first, first)}", options)
    if first == "ephemeral" and pod_name and name:
        claim = f"{pod_name}-{name}"
        errors += [
            invalid(f"{path}.name", name, f"PVC name {quoted(claim)}: {problem}")
            for problem in names.dns_subdomain(claim)
        ]
    for source in given:
        if source != first:
            clash = f"{path}.{_CLASHES.get(source, source)}"
            errors.append(forbidden(clash, "may not specify more than 1 volume type"))
        if source == "iscsi" and "initiatorName" in volume["iscsi"]:
            portal = volume["iscsi"].get("targetPortal", "")
            if len(f"{name}:{portal}".encode()) > 64:
                why = (
                    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if "
                    "iscsi.initiatorName is specified."
                )
                errors.append(invalid(f"{path}.name", name, why))
    return errors
