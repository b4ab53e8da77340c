"""Validation of Windows pods: security options, host processes, and fields that such pods must not set."""

from __future__ import annotations

import re

from kubist.api.kinds.core.podspec.options import Options
from kubist.api.kinds.core.podspec.visit import containers_of, with_paths
from kubist.model.meta import names
from kubist.model.meta.fields import FieldError, forbidden, invalid
from kubist.model.meta.object import Object

Errors = list[FieldError]

_has_control = re.compile(r"[\x00-\x1f\x7f]").search
_is_net_bios = re.compile(r'[^\\/:\*\?"<>|\.][^\\/:\*\?"<>|]{0,14}').fullmatch
_DNS_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_is_domain = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*").fullmatch
_has_bad_char = re.compile(r'["/\\:;|=,\+\*\?<>@\[\]]').search
_is_dots_or_spaces = re.compile(r"[\. ]+").fullmatch
_LINUX_ONLY_SPEC = ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace")
_LINUX_ONLY_POD = (
    "appArmorProfile",
    "seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "shareProcessNamespace",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
"""Fields of the pod that only Linux supports. `_LINUX_ONLY_SPEC` are in the spec, the others in its
securityContext."""
_LINUX_ONLY_CONTAINER = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


def validate_windows_options(options: Object, path: str) -> Errors:
    errors: Errors = []
    name = options.get("gmsaCredentialSpecName")
    if name is not None:
        where = f"{path}.gmsaCredentialSpecName"
        errors += [invalid(where, name, problem) for problem in names.dns_subdomain(name)]
    spec = options.get("gmsaCredentialSpec")
    if spec is not None:
        where = f"{path}.gmsaCredentialSpec"
        if not spec:
            errors.append(invalid(where, spec, "gmsaCredentialSpec cannot be an empty string"))
        elif len(spec.encode()) > 64 * 1024:
            errors.append(invalid(where, spec, "gmsaCredentialSpec size must be under 64 KiB"))
    user = options.get("runAsUserName")
    if user is not None:
        where = f"{path}.runAsUserName"
        errors += [invalid(where, user, problem) for problem in _user_name(user)]
    return errors


def _user_name(text: str) -> list[str]:
    """`USER` or `DOMAIN\\USER`."""
    if not text:
        return ["runAsUserName cannot be an empty string"]
    if _has_control(text):
        return ["runAsUserName cannot contain control characters"]
    if text.count("\\") > 1:
        return ["runAsUserName cannot contain more than one backslash"]
    domain, backslash, user = text.rpartition("\\")
    problems = []
    if len(domain.encode()) >= 256:
        problems.append("runAsUserName's Domain length must be under 256 characters")
    if backslash and not _is_net_bios(domain) and not _is_domain(domain):
        problems.append("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
    if not user:
        problems.append("runAsUserName's User cannot be empty")
    elif len(user.encode()) > 104:
        problems.append("runAsUserName's User length must not be longer than 104 characters")
    if _is_dots_or_spaces(user):
        problems.append("runAsUserName's User cannot contain only periods or spaces")
    if _has_bad_char(user):
        problems.append("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")
    return problems


def _host_process(owner: Object) -> bool | None:
    context = owner.get("securityContext")
    if not context or "windowsOptions" not in context:
        return None
    host_process: bool | None = context["windowsOptions"].get("hostProcess")
    return host_process


def validate_host_process(spec: Object, path: str, options: Options) -> Errors:
    """Validates Windows host processes: all containers or none, with hostNetwork."""
    of_pod = _host_process(spec)
    if of_pod is None and all(_host_process(container) is None for container in containers_of(spec)):
        return []
    errors: Errors = []
    count = host_processes = 0
    for container, where in with_paths(spec, path):
        count += 1
        own = _host_process(container)
        if own is not None and of_pod is not None and own != of_pod:
            pod_value = "true" if of_pod else "false"
            why = f"pod hostProcess value must be identical if both are specified, was {pod_value}"
            errors.append(invalid(f"{where}.securityContext.windowsOptions.hostProcess", own, why))
        if own or (own is None and of_pod):
            host_processes += 1
    if not host_processes:
        return errors
    if host_processes != count:
        why = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        errors.append(invalid(path, "", why))
    if not spec.get("hostNetwork"):
        why = "hostNetwork must be true if pod contains any hostProcess containers"
        errors.append(invalid(f"{path}.hostNetwork", False, why))
    if not options.allow_privileged:
        errors.append(forbidden(path, "hostProcess containers are disallowed by cluster policy"))
    return errors


def validate_windows_pod(spec: Object, path: str) -> Errors:
    """Rejects fields that a Windows pod must not set."""
    why = "cannot be set for a windows pod"
    context = spec.get("securityContext") or {}
    errors: Errors = []
    for field in _LINUX_ONLY_POD:
        if field in _LINUX_ONLY_SPEC:
            if field in spec:
                errors.append(forbidden(f"{path}.{field}", why))
        elif field in context:
            errors.append(forbidden(f"{path}.securityContext.{field}", why))
    for container, where in with_paths(spec, path):
        own = container.get("securityContext") or {}
        errors += [forbidden(f"{where}.securityContext.{f}", why) for f in _LINUX_ONLY_CONTAINER if f in own]
    return errors


def validate_linux_pod(spec: Object, path: str) -> Errors:
    """Rejects fields that a Linux pod must not set."""
    why = "windows options cannot be set for a linux pod"
    owners = [(spec, path), *with_paths(spec, path)]
    return [
        forbidden(f"{where}.securityContext.windowsOptions", why)
        for owner, where in owners
        if "windowsOptions" in (owner.get("securityContext") or {})
    ]
