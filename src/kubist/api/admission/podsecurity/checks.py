"""Table of all checks: the version from which each form applies, and the baseline checks it replaces."""

from __future__ import annotations

from collections.abc import Iterable

from kubist.api.admission.podsecurity import baseline, restricted
from kubist.api.admission.podsecurity.baseline import Check, Violation
from kubist.api.admission.podsecurity.levels import BASELINE, LATEST, PRIVILEGED, Standard
from kubist.api.admission.podsecurity.restricted import unless_user_namespace, unless_windows
from kubist.base.caching import bounded_cache
from kubist.model.meta.object import Object

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
    found = {}
    for name, versions in table.items():
        for since, check in versions:
            if minor == LATEST or since <= minor:
                found[name] = check
    return found


def violations(standard: Standard, metadata: Object, spec: Object) -> list[Violation]:
    return [found for check in checks_of(standard) if (found := check(metadata, spec)) is not None]


def reasons(found: Iterable[Violation]) -> str:
    return ", ".join(reason for reason, _ in found)


def details(found: Iterable[Violation]) -> str:
    return ", ".join(f"{reason} ({detail})" if detail else reason for reason, detail in found)
