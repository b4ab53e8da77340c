"""Checks of the baseline level. A check gets a pod's metadata and spec. It returns a reason and details, or None."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from kubist.base.jsontext.quoting import quoted
from kubist.model.meta.object import Object

Violation = tuple[str, str]
Check = Callable[[Object, Object], Violation | None]

CAPABILITIES = frozenset(
    (
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    )
)
APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
PROFILES = ("RuntimeDefault", "Localhost")


def containers(spec: Object) -> Iterator[Object]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(field) or ()


def context(of: Object) -> Object:
    return of.get("securityContext") or {}


def listed(items: Iterable[str]) -> str:
    return ", ".join(f'"{item}"' for item in items)


def several(word: str, items: Collection[Any]) -> str:
    return word if len(items) == 1 else f"{word}s"


def named(bad: list[Object]) -> str:
    """Containers by name, as shown in messages."""
    return f"{several('container', bad)} {listed(c.get('name', '') for c in bad)}"


def setters(pod: bool, bad: list[Object]) -> str:
    """Setters of a field as shown in messages: the pod, some containers, or both."""
    return " and ".join((["pod"] if pod else []) + ([named(bad)] if bad else []))


def app_armor(metadata: Object, spec: Object) -> Violation | None:
    values: set[str] = set()

    def bad(of: Object) -> bool:
        profile = context(of).get("appArmorProfile")
        if profile is None or profile.get("type") in PROFILES:
            return False
        values.add(profile.get("type", ""))
        return True

    pod = bad(spec)
    who = [name] if (name := setters(pod, [c for c in containers(spec) if bad(c)])) else []
    annotations = sorted(
        f"{key}={quoted(value)}"
        for key, value in (metadata.get("annotations") or {}).items()
        if key.startswith(APPARMOR_ANNOTATION)
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    )
    if annotations:
        who.append(several("annotation", annotations))
    if not who:
        return None
    profiles = [*sorted(values), *annotations]
    reason = several("forbidden AppArmor profile", profiles)
    return reason, f"{' and '.join(who)} must not set AppArmor profile type to {listed(profiles)}"


def capabilities(_metadata: Object, spec: Object) -> Violation | None:
    added: set[str] = set()
    bad = []
    for container in containers(spec):
        extra = set((context(container).get("capabilities") or {}).get("add") or ()) - CAPABILITIES
        if extra:
            added |= extra
            bad.append(container)
    if not bad:
        return None
    what = f"must not include {listed(sorted(added))} in securityContext.capabilities.add"
    return "non-default capabilities", f"{named(bad)} {what}"


def host_namespaces(_metadata: Object, spec: Object) -> Violation | None:
    shared = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field)]
    return ("host namespaces", ", ".join(shared)) if shared else None


def host_path_volumes(_metadata: Object, spec: Object) -> Violation | None:
    bad = [v.get("name", "") for v in spec.get("volumes") or () if v.get("hostPath") is not None]
    return ("hostPath volumes", f"{several('volume', bad)} {listed(bad)}") if bad else None


def host_ports(_metadata: Object, spec: Object) -> Violation | None:
    ports: set[str] = set()
    bad = []
    for container in containers(spec):
        numbers = {str(p["hostPort"]) for p in container.get("ports") or () if p.get("hostPort")}
        if numbers:
            ports |= numbers
            bad.append(container)
    if not bad:
        return None
    verb = "uses" if len(bad) == 1 else "use"
    return "hostPort", f"{named(bad)} {verb} {several('hostPort', ports)} {', '.join(sorted(ports))}"


def host_probes(_metadata: Object, spec: Object) -> Violation | None:
    hosts: set[str] = set()
    bad: set[str] = set()
    for container in containers(spec):
        handlers = [container.get(f"{probe}Probe") for probe in ("liveness", "readiness", "startup")]
        lifecycle = container.get("lifecycle") or {}
        handlers += [lifecycle.get("postStart"), lifecycle.get("preStop")]
        for handler in handlers:
            for action in ("httpGet", "tcpSocket"):
                host = ((handler or {}).get(action) or {}).get("host")
                if host:
                    hosts.add(host)
                    bad.add(container.get("name", ""))
    if not bad:
        return None
    who = f"{several('container', bad)} {listed(sorted(bad))} {'uses' if len(bad) == 1 else 'use'}"
    what = f"{several('probe or lifecycle host', hosts)} {listed(sorted(hosts))}"
    return "probe or lifecycle host", f"{who} {what}"


def privileged(_metadata: Object, spec: Object) -> Violation | None:
    bad = [c for c in containers(spec) if context(c).get("privileged")]
    return ("privileged", f"{named(bad)} must not set securityContext.privileged=true") if bad else None


def proc_mount(_metadata: Object, spec: Object) -> Violation | None:
    bad = [c for c in containers(spec) if context(c).get("procMount", "Default") != "Default"]
    if not bad:
        return None
    types = sorted({context(c)["procMount"] for c in bad})
    return "procMount", f"{named(bad)} must not set securityContext.procMount to {listed(types)}"


def se_linux(*more: str) -> Check:
    """Check of SELinux options. `more`: additional types that a later version allows."""
    allowed = ("", "container_t", "container_init_t", "container_kvm_t", *more)

    def check(_metadata: Object, spec: Object) -> Violation | None:
        types: set[str] = set()
        also: set[str] = set()

        def bad(of: Object) -> bool:
            options = context(of).get("seLinuxOptions")
            if options is None:
                return False
            wrong = {options.get("type", "")} - set(allowed)
            fields = {field for field in ("user", "role") if options.get(field)}
            types.update(wrong)
            also.update(fields)
            return bool(wrong or fields)

        pod = bad(spec)
        who = setters(pod, [c for c in containers(spec) if bad(c)])
        if not who:
            return None
        what = [f"{several('type', types)} {listed(sorted(types))}"] if types else []
        what += [f"{field} may not be set" for field in ("user", "role") if field in also]
        return "seLinuxOptions", f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(what)}"

    return check


def seccomp_annotations(metadata: Object, spec: Object) -> Violation | None:
    annotations = metadata.get("annotations") or {}
    keys = [SECCOMP_POD, *(SECCOMP_CONTAINER + c.get("name", "") for c in containers(spec))]
    profiles = {key: annotations[key] for key in keys if key in annotations}
    bad = sorted(
        f"{key}={quoted(value)}"
        for key, value in profiles.items()
        if value not in ("runtime/default", "docker/default") and not value.startswith("localhost/")
    )
    return ("seccompProfile", f"forbidden {several('annotation', bad)} {', '.join(bad)}") if bad else None


def bad_seccomp(of: Object) -> bool:
    profile = context(of).get("seccompProfile")
    return profile is not None and profile.get("type") not in PROFILES


def seccomp(_metadata: Object, spec: Object) -> Violation | None:
    bad = [c for c in containers(spec) if bad_seccomp(c)]
    pod = bad_seccomp(spec)
    if not bad and not pod:
        return None
    holders = [*bad, *([spec] if pod else [])]
    values = sorted({context(of)["seccompProfile"].get("type", "") for of in holders})
    what = f"must not set securityContext.seccompProfile.type to {listed(values)}"
    return "seccompProfile", f"{setters(pod, bad)} {what}"


def sysctls(*allowed: str) -> Check:
    def check(_metadata: Object, spec: Object) -> Violation | None:
        names = [sysctl.get("name", "") for sysctl in context(spec).get("sysctls") or ()]
        bad = [name for name in names if name not in allowed]
        return ("forbidden sysctls", ", ".join(bad)) if bad else None

    return check


def windows_host_process(_metadata: Object, spec: Object) -> Violation | None:
    def bad(of: Object) -> bool:
        return bool((context(of).get("windowsOptions") or {}).get("hostProcess"))

    who = setters(bad(spec), [c for c in containers(spec) if bad(c)])
    if not who:
        return None
    return "hostProcess", f"{who} must not set securityContext.windowsOptions.hostProcess=true"
