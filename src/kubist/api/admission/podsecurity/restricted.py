"""Checks of the restricted level in addition to the baseline."""

from __future__ import annotations

from kubist.api.admission.podsecurity.baseline import (
    Check,
    Violation,
    bad_seccomp,
    containers,
    context,
    listed,
    named,
    seccomp,
    setters,
    several,
)
from kubist.model.meta.object import Object

VOLUMES = frozenset(
    (
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    )
)


def unless_windows(check: Check) -> Check:
    """Check that is skipped for Windows pods, where it has no meaning."""
    return lambda metadata, spec: (
        None if (spec.get("os") or {}).get("name") == "windows" else check(metadata, spec)
    )


def unless_user_namespace(check: Check) -> Check:
    """Check that is skipped for pods in a user namespace, where root in the pod is not root on the host."""
    return lambda metadata, spec: None if spec.get("hostUsers") is False else check(metadata, spec)


def allow_privilege_escalation(_metadata: Object, spec: Object) -> Violation | None:
    bad = [c for c in containers(spec) if context(c).get("allowPrivilegeEscalation") is not False]
    if not bad:
        return None
    what = f"{named(bad)} must set securityContext.allowPrivilegeEscalation=false"
    return "allowPrivilegeEscalation != false", what


def capabilities(_metadata: Object, spec: Object) -> Violation | None:
    undropped, adding = [], []
    added: set[str] = set()
    for container in containers(spec):
        settings = context(container).get("capabilities") or {}
        if "ALL" not in (settings.get("drop") or ()):
            undropped.append(container)
        extra = set(settings.get("add") or ()) - {"NET_BIND_SERVICE"}
        if extra:
            added |= extra
            adding.append(container)
    details = []
    if undropped:
        details.append(f'{named(undropped)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        what = f"must not include {listed(sorted(added))} in securityContext.capabilities.add"
        details.append(f"{named(adding)} {what}")
    return ("unrestricted capabilities", "; ".join(details)) if details else None


def volumes(_metadata: Object, spec: Object) -> Violation | None:
    bad = [v for v in spec.get("volumes") or () if not VOLUMES & v.keys()]
    if not bad:
        return None
    types = sorted({next((key for key in volume if key != "name"), "unknown") for volume in bad})
    who = f"{several('volume', bad)} {listed(v.get('name', '') for v in bad)}"
    verb = "uses" if len(bad) == 1 else "use"
    what = f"{several('restricted volume type', types)} {listed(types)}"
    return "restricted volume types", f"{who} {verb} {what}"


def run_as_non_root(_metadata: Object, spec: Object) -> Violation | None:
    reason = "runAsNonRoot != true"
    wish = context(spec).get("runAsNonRoot")
    bad = [c for c in containers(spec) if context(c).get("runAsNonRoot") is False]
    if who := setters(wish is False, bad):
        return reason, f"{who} must not set securityContext.runAsNonRoot=false"
    silent = [c for c in containers(spec) if context(c).get("runAsNonRoot") is None]
    if silent and not wish:
        return reason, f"pod or {named(silent)} must set securityContext.runAsNonRoot=true"
    return None


def run_as_user(_metadata: Object, spec: Object) -> Violation | None:
    bad = [c for c in containers(spec) if context(c).get("runAsUser") == 0]
    who = setters(context(spec).get("runAsUser") == 0, bad)
    return ("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def seccomp_required(metadata: Object, spec: Object) -> Violation | None:
    wrong = seccomp(metadata, spec)
    if wrong is not None:
        return wrong
    silent = [c for c in containers(spec) if context(c).get("seccompProfile") is None]
    pod_has_profile = context(spec).get("seccompProfile") is not None and not bad_seccomp(spec)
    if not silent or pod_has_profile:
        return None
    what = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return "seccompProfile", f"pod or {named(silent)} {what}"
