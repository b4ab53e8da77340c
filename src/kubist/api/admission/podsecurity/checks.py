"""Pod Security Standards: levels and versions, the policy in a namespace's labels, and the table of all checks with the
version from which each form applies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kubist.api.admission.podsecurity import baseline, restricted
from kubist.api.admission.podsecurity.baseline import Check, Violation
from kubist.api.admission.podsecurity.restricted import unless_user_namespace, unless_windows
from kubist.base.caching import bounded_cache
from kubist.model.meta import fields
from kubist.model.meta.fields import FieldError
from kubist.model.meta.object import Object

PREFIX = "pod-security.kubernetes.io/"
PRIVILEGED, BASELINE, RESTRICTED = LEVELS = ("privileged", "baseline", "restricted")
LATEST = -1
_VERSION = re.compile(r"v1\.([0-9]|[1-9][0-9]*)")


@dataclass(slots=True, frozen=True)
class Standard:
    """Level at a version: `minor` is the minor version of Kubernetes 1, or LATEST."""

    level: str = PRIVILEGED
    minor: int = LATEST

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.minor == LATEST else f'v1.{self.minor}'}"

    def stricter_than(self, other: Standard) -> bool:
        return LEVELS.index(self.level) > LEVELS.index(other.level)


@dataclass(slots=True, frozen=True)
class Policy:
    """Standards of a namespace for rejection (enforce), audit log and warnings."""

    enforce: Standard = Standard()
    audit: Standard = Standard()
    warn: Standard = Standard()

    @property
    def privileged(self) -> bool:
        return self.enforce.level == self.audit.level == self.warn.level == PRIVILEGED


def policy_of(
    labels: Mapping[str, str], defaults: Policy, *, follow: bool = True
) -> tuple[Policy, list[FieldError]]:
    """Policy of a namespace, and errors of invalid labels. An invalid enforce level counts as restricted, an
    invalid audit or warn level as privileged. With `follow`, an absent warn level follows a stricter enforce level."""
    errors: list[FieldError] = []

    def standard(mode: str, default: Standard, unreadable: str) -> Standard:
        level, minor = default.level, default.minor
        value = labels.get(PREFIX + mode)
        if value is not None:
            level = value
            if value not in LEVELS:
                level = unreadable
                errors.append(_invalid(mode, value, f"must be one of {', '.join(LEVELS)}"))
        value = labels.get(f"{PREFIX}{mode}-version")
        if value is not None:
            minor = LATEST
            if match := _VERSION.fullmatch(value):
                minor = int(match[1])
            elif value != "latest":
                errors.append(_invalid(f"{mode}-version", value, 'must be "latest" or "v1.x"'))
        return Standard(level, minor)

    enforce = standard("enforce", defaults.enforce, RESTRICTED)
    audit = standard("audit", defaults.audit, PRIVILEGED)
    warn = standard("warn", defaults.warn, PRIVILEGED)
    unsaid = PREFIX + "warn" not in labels and labels.get(PREFIX + "enforce") in LEVELS
    if follow and unsaid and enforce.stricter_than(warn):
        minor = warn.minor if f"{PREFIX}warn-version" in labels else enforce.minor
        warn = Standard(enforce.level, minor)
    return Policy(enforce, audit, warn), errors


def _invalid(label: str, value: str, why: str) -> FieldError:
    return fields.invalid(f"metadata.labels[{PREFIX}{label}]", value, why)


_SYSCTLS = (
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
)
_SYSCTLS_27 = (*_SYSCTLS, "net.ipv4.ip_local_reserved_ports")
_SYSCTLS_29 = (
    *_SYSCTLS_27,
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
)
_SYSCTLS_32 = (*_SYSCTLS_29, "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")

Versions = tuple[tuple[int, Check], ...]

OF_BASELINE: dict[str, Versions] = {
    "appArmorProfile": ((0, baseline.app_armor),),
    "capabilities_baseline": ((0, baseline.capabilities),),
    "hostNamespaces": ((0, baseline.host_namespaces),),
    "hostPathVolumes": ((0, baseline.host_path_volumes),),
    "hostPorts": ((0, baseline.host_ports),),
    "hostProbesAndHostLifecycle": ((34, baseline.host_probes),),
    "privileged": ((0, baseline.privileged),),
    "procMount": ((0, baseline.proc_mount), (35, unless_user_namespace(baseline.proc_mount))),
    "seLinuxOptions": ((0, baseline.se_linux()), (31, baseline.se_linux("container_engine_t"))),
    "seccompProfile_baseline": ((0, baseline.seccomp_annotations), (19, baseline.seccomp)),
    "sysctls": (
        (0, baseline.sysctls(*_SYSCTLS)),
        (27, baseline.sysctls(*_SYSCTLS_27)),
        (29, baseline.sysctls(*_SYSCTLS_29)),
        (32, baseline.sysctls(*_SYSCTLS_32)),
    ),
    "windowsHostProcess": ((0, baseline.windows_host_process),),
}
"""Check → (minor version from which a form applies, form), in the order of the reported violations."""

OF_RESTRICTED: dict[str, Versions] = {
    "allowPrivilegeEscalation": (
        (8, restricted.allow_privilege_escalation),
        (25, unless_windows(restricted.allow_privilege_escalation)),
    ),
    "capabilities_restricted": (
        (22, restricted.capabilities),
        (25, unless_windows(restricted.capabilities)),
    ),
    "procMount_restricted": ((35, baseline.proc_mount),),
    "restrictedVolumes": ((0, restricted.volumes),),
    "runAsNonRoot": (
        (0, restricted.run_as_non_root),
        (35, unless_user_namespace(restricted.run_as_non_root)),
    ),
    "runAsUser": ((23, restricted.run_as_user), (35, unless_user_namespace(restricted.run_as_user))),
    "seccompProfile_restricted": (
        (19, restricted.seccomp_required),
        (25, unless_windows(restricted.seccomp_required)),
    ),
}

REPLACES = {
    "capabilities_restricted": "capabilities_baseline",
    "procMount_restricted": "procMount",
    "restrictedVolumes": "hostPathVolumes",
    "seccompProfile_restricted": "seccompProfile_baseline",
}
"""Check of the restricted level → check of the baseline that it replaces."""


@bounded_cache(entries=256, key_length=64)
def checks_of(standard: Standard) -> tuple[Check, ...]:
    if standard.level == PRIVILEGED:
        return ()
    lower = _as_of(OF_BASELINE, standard.minor)
    if standard.level == BASELINE:
        return tuple(lower.values())
    upper = _as_of(OF_RESTRICTED, standard.minor)
    replaced = {REPLACES[name] for name in upper if name in REPLACES}
    return (*(check for name, check in lower.items() if name not in replaced), *upper.values())


def _as_of(table: dict[str, Versions], minor: int) -> dict[str, Check]:
    """Newest form of each check up to a minor version."""
    checks = {}
    for name, versions in table.items():
        for since, check in versions:
            if minor == LATEST or since <= minor:
                checks[name] = check
    return checks


def violations(standard: Standard, metadata: Object, spec: Object) -> list[Violation]:
    return [violation for check in checks_of(standard) if (violation := check(metadata, spec)) is not None]


def reasons(problems: Iterable[Violation]) -> str:
    return ", ".join(reason for reason, _ in problems)


def details(problems: Iterable[Violation]) -> str:
    return ", ".join(f"{reason} ({detail})" if detail else reason for reason, detail in problems)
