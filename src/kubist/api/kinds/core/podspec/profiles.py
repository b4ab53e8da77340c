"""Seccomp and AppArmor profiles, in fields and in the annotations that preceded the fields."""

from __future__ import annotations

from kubist.api.kinds.core.podspec import paths
from kubist.api.kinds.core.podspec.visit import containers_of, with_paths
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta.fields import FieldError, forbidden, invalid, not_supported, required, too_long
from kubist.model.meta.object import Object

Errors = list[FieldError]

SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
APP_ARMOR_CONTAINER = "container.apparmor.security.beta.kubernetes.io/"
PROFILES = (SECCOMP_POD, SECCOMP_CONTAINER, APP_ARMOR_CONTAINER)
"""Key prefixes of the profile annotations."""
_LOCALHOST = "localhost/"
_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_PATH_MAX = 4095


def validate_seccomp_profile(profile: Object, path: str) -> Errors:
    kind, file = profile.get("type", ""), profile.get("localhostProfile")
    errors: Errors = []
    if not kind:
        errors.append(required(f"{path}.type", "type is required when seccompProfile is set"))
    elif kind not in _TYPES:
        errors.append(not_supported(f"{path}.type", kind, _TYPES))
    if kind != "Localhost":
        if file is not None:
            why = "can only be set when seccomp type is Localhost"
            value = {"Type": kind, "LocalhostProfile": file}
            errors.append(invalid(f"{path}.localhostProfile", value, why))
    elif file is None:
        errors.append(required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost"))
    else:
        errors += paths.local_descending(file, f"{path}.localhostProfile")
    return errors


def validate_app_armor_profile(profile: Object, path: str) -> Errors:
    kind, name = profile.get("type", ""), profile.get("localhostProfile")
    where = f"{path}.localhostProfile"
    if not kind:
        return [required(f"{path}.type", "type is required when appArmorProfile is set")]
    if kind not in _TYPES:
        return [not_supported(f"{path}.type", kind, _TYPES)]
    if kind != "Localhost":
        return (
            [] if name is None else [invalid(where, name, "can only be set when AppArmor type is Localhost")]
        )
    if name is None or name == "":
        return [required(where, "must be set when AppArmor type is Localhost")]
    errors: Errors = []
    if name != name.strip():
        errors.append(invalid(where, name, "must not be padded with whitespace"))
    if len(name.encode()) > _PATH_MAX:
        errors.append(too_long(where, _PATH_MAX))
    return errors


def validate_profile_annotations(annotations: dict[str, str], spec: Object, path: str) -> Errors:
    """Validates the annotations alone: their values, and that the named containers exist."""
    if not have_profiles(annotations):
        return []
    errors: Errors = []
    if SECCOMP_POD in annotations:
        errors += _seccomp_annotation(annotations[SECCOMP_POD], f"{path}.{SECCOMP_POD}")
    for key in sorted(annotations):
        if key.startswith(SECCOMP_CONTAINER):
            errors += _seccomp_annotation(annotations[key], f"{path}.{key}")
    known = {container.get("name", "") for container in containers_of(spec)}
    for key in sorted(annotations):
        if key.startswith(APP_ARMOR_CONTAINER):
            name, value = key.removeprefix(APP_ARMOR_CONTAINER), annotations[key]
            if name not in known:
                errors.append(invalid(f"{path}[{key}]", name, "container not found"))
            if value not in ("", "runtime/default", "unconfined") and not value.startswith(_LOCALHOST):
                why = f"invalid AppArmor profile name: {quoted(value)}"
                errors.append(invalid(f"{path}[{key}]", value, why))
    return errors


def have_profiles(annotations: dict[str, str]) -> bool:
    """Whether a profile annotation is present. Most pods have none."""
    for key in annotations:  # noqa: SIM110 -- every write of a pod asks this several times
        if key.startswith(PROFILES):
            return True
    return False


def _seccomp_annotation(value: str, path: str) -> Errors:
    if value in ("runtime/default", "docker/default", "unconfined"):
        return []
    if value.startswith(_LOCALHOST):
        return paths.local_descending(value.removeprefix(_LOCALHOST), path)
    return [invalid(path, value, "must be a valid seccomp profile")]


def validate_profiles_match(annotations: dict[str, str], spec: Object, path: str) -> Errors:
    """Validates that a field and its annotation agree if both are set."""
    if not have_profiles(annotations):
        return []
    errors: Errors = []
    context = spec.get("securityContext") or {}
    if SECCOMP_POD in annotations and "seccompProfile" in context:
        where = f"{path}.securityContext.seccompProfile"
        errors += _matches("seccomp", annotations[SECCOMP_POD], context["seccompProfile"], where)
    for container, where in with_paths(spec, path):
        annotation = annotations.get(SECCOMP_CONTAINER + container.get("name", ""))
        profile = (container.get("securityContext") or {}).get("seccompProfile")
        if annotation is not None and profile is not None:
            errors += _matches("seccomp", annotation, profile, f"{where}.securityContext.seccompProfile")
    if (spec.get("os") or {}).get("name") == "windows":
        return errors
    for container, where in with_paths(spec, path):
        annotation = annotations.get(APP_ARMOR_CONTAINER + container.get("name", ""))
        own = (container.get("securityContext") or {}).get("appArmorProfile")
        profile = own if own is not None else context.get("appArmorProfile")
        if annotation is not None and profile is not None:
            errors += _matches("apparmor", annotation, profile, f"{where}.securityContext.appArmorProfile")
    return errors


def _matches(what: str, annotation: str, profile: Object, path: str) -> Errors:
    wrong_type = [forbidden(f"{path}.type", f"{what} type in annotation and field must match")]
    match profile.get("type"):
        case "Unconfined":
            return [] if annotation == "unconfined" else wrong_type
        case "RuntimeDefault":
            same = annotation == "runtime/default" or (what == "seccomp" and annotation == "docker/default")
            return [] if same else wrong_type
        case "Localhost":
            if not annotation.startswith(_LOCALHOST):
                return wrong_type
            if annotation.removeprefix(_LOCALHOST) != profile.get("localhostProfile"):
                why = f"{what} profile in annotation and field must match"
                return [forbidden(f"{path}.localhostProfile", why)]
    return []


def app_armor_profile_of(annotation: str) -> Object | None:
    """AppArmor profile field for an annotation value, None if the value has no equivalent."""
    match annotation:
        case "unconfined":
            return {"type": "Unconfined"}
        case "runtime/default":
            return {"type": "RuntimeDefault"}
    name = annotation.removeprefix(_LOCALHOST)
    return {"type": "Localhost", "localhostProfile": name} if name and name != annotation else None


def copy_app_armor_annotations(pod: Object) -> list[str]:
    """Copies AppArmor annotations of a new pod to the fields that replaced them. Returns deprecation warnings."""
    spec = pod["spec"]
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    if not have_profiles(annotations):
        return []
    if (spec.get("os") or {}).get("name") == "windows":
        return []
    warnings = []
    pod_profile = (spec.get("securityContext") or {}).get("appArmorProfile")
    for container, _ in with_paths(spec, ""):
        key = APP_ARMOR_CONTAINER + container.get("name", "")
        if key not in annotations or "appArmorProfile" in (container.get("securityContext") or {}):
            continue
        profile = app_armor_profile_of(annotations[key])
        if profile is not None and validate_app_armor_profile(profile, ""):
            profile = None
        if profile is not None and profile == pod_profile:
            continue
        if profile is not None:
            container.setdefault("securityContext", {})["appArmorProfile"] = profile
        warnings.append(app_armor_warning(f"metadata.annotations[{key}]"))
    return warnings


def app_armor_warning(path: str) -> str:
    return f'{path}: deprecated since v1.30; use the "appArmorProfile" field instead'
