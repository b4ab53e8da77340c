"""Validation of security contexts of pods and containers."""

from __future__ import annotations

import re

from kubist.api.kinds.core.podspec.options import Options
from kubist.api.kinds.core.podspec.profiles import validate_app_armor_profile, validate_seccomp_profile
from kubist.api.kinds.core.podspec.visit import containers_of
from kubist.api.kinds.core.podspec.windows import validate_windows_options
from kubist.model.meta.fields import FieldError, duplicate, forbidden, invalid, not_supported, required
from kubist.model.meta.object import Object
from kubist.model.schema.internals import internal_form

Errors = list[FieldError]

_MAX_ID = (1 << 31) - 1
_ID = f"must be between 0 and {_MAX_ID}, inclusive"
_SYSCTL_PART = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"^({_SYSCTL_PART}[\./])*{_SYSCTL_PART}$"
_is_sysctl = re.compile(_SYSCTL).match
_IPC_SYSCTLS = frozenset(
    {
        "kernel.msg",
        "kernel.msgmax",
        "kernel.msgmnb",
        "kernel.msgmni",
        "kernel.sem",
        "kernel.shm",
        "kernel.shm_rmid_forced",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
    }
)


def validate_id(value: int, path: str) -> Errors:
    """Validates a user or group id: 0 to 2^31-1."""
    return [] if 0 <= value <= _MAX_ID else [invalid(path, value, _ID)]


def _ids(context: Object, path: str, *fields: str) -> Errors:
    errors: Errors = []
    for field in fields:
        if field in context:
            errors += validate_id(context[field], f"{path}.{field}")
    return errors


def validate_pod_security_context(spec: Object, path: str, options: Options) -> Errors:
    context: Object = spec.get("securityContext") or {}
    errors = _ids(context, path, "fsGroup", "runAsUser", "runAsGroup") if context else []
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        errors += validate_id(group, f"{path}.supplementalGroups[{index}]")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(f"{path}.shareProcessNamespace", True, why))
    if not context:
        return errors
    if "sysctls" in context:
        errors += _sysctls(context["sysctls"], spec, f"{path}.sysctls", options)
    errors += _one_of(context, "fsGroupChangePolicy", ("Always", "OnRootMismatch"), path)
    if "seccompProfile" in context:
        errors += validate_seccomp_profile(context["seccompProfile"], f"{path}.seccompProfile")
    if "windowsOptions" in context:
        errors += validate_windows_options(context["windowsOptions"], f"{path}.windowsOptions")
    if "appArmorProfile" in context:
        errors += validate_app_armor_profile(context["appArmorProfile"], f"{path}.appArmorProfile")
    errors += _one_of(context, "supplementalGroupsPolicy", ("Merge", "Strict"), path)
    selinux = ("MountOption", "Recursive") if options.any_selinux_change_policy else ("Recursive",)
    return errors + _one_of(context, "seLinuxChangePolicy", selinux, path)


def _one_of(context: Object, field: str, supported: tuple[str, ...], path: str) -> Errors:
    if field not in context or context[field] in supported:
        return []
    return [not_supported(f"{path}.{field}", context[field], supported)]


def _sysctls(sysctls: list[Object], spec: Object, path: str, options: Options) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        name, where = sysctl.get("name", ""), f"{path}[{index}].name"
        if not name:
            errors.append(required(where))
        elif len(name) > 253 or not _is_sysctl(name):
            errors.append(invalid(where, name, f"must have at most 253 characters and match regex {_SYSCTL}"))
        elif name in seen:
            errors.append(duplicate(where, name))
        if not options.namespaced_sysctls_on_host:
            errors += host_sysctl(name, spec, where)
        seen.add(name)
    return errors


def host_sysctl(sysctl: str, spec: Object, path: str) -> Errors:
    """Rejects a sysctl of a namespace that the pod shares with its host."""
    name = _with_dots(sysctl).partition("*")[0]
    if spec.get("hostNetwork") and name.startswith("net."):
        return [invalid(path, sysctl, "may not be specified when 'hostNetwork' is true")]
    if spec.get("hostIPC") and (name in _IPC_SYSCTLS or name.startswith("fs.mqueue.")):
        return [invalid(path, sysctl, "may not be specified when 'hostIPC' is true")]
    return []


def _with_dots(name: str) -> str:
    """Sysctl name with dots as separators. A name whose first separator is a slash has dots and slashes swapped."""
    separator = next((char for char in name if char in "./"), ".")
    return name if separator == "." else name.translate(str.maketrans("./", "/."))


def is_privileged(spec: Object) -> bool:
    """Whether a container is privileged or a Windows host process. `--allow-privileged` governs both."""
    contexts = [owner["securityContext"] or {} for owner in containers_of(spec) if "securityContext" in owner]
    return any(
        context.get("privileged") or (context.get("windowsOptions") or {}).get("hostProcess")
        for context in (*contexts, spec.get("securityContext") or {})
    )


def validate_security_context(context: Object, host_users: bool, path: str, options: Options) -> Errors:
    """Validates the security context of a container."""
    errors: Errors = []
    privileged = context.get("privileged")
    if privileged and not options.allow_privileged:
        errors.append(forbidden(f"{path}.privileged", "disallowed by cluster policy"))
    errors += _ids(context, path, "runAsUser", "runAsGroup")
    if "procMount" in context:
        errors += _one_of(context, "procMount", ("Default", "Unmasked"), path)
        if host_users and context["procMount"] == "Unmasked":
            why = "`hostUsers` must be false to use `Unmasked`"
            errors.append(invalid(f"{path}.procMount", context["procMount"], why))
    if "seccompProfile" in context:
        errors += validate_seccomp_profile(context["seccompProfile"], f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        if privileged:
            why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(invalid(path, internal_form("core.SecurityContext", context), why))
        for capability in (context.get("capabilities") or {}).get("add") or ():
            if capability == "CAP_SYS_ADMIN":
                why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
                errors.append(invalid(path, internal_form("core.SecurityContext", context), why))
    if "windowsOptions" in context:
        errors += validate_windows_options(context["windowsOptions"], f"{path}.windowsOptions")
    if "appArmorProfile" in context:
        errors += validate_app_armor_profile(context["appArmorProfile"], f"{path}.appArmorProfile")
    return errors
