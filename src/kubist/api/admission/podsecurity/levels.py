"""Levels and versions of the Pod Security Standards, and the policy of a namespace's labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kubist.model.meta import fields
from kubist.model.meta.fields import FieldError

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
        given = labels.get(PREFIX + mode)
        if given is not None:
            level = given
            if given not in LEVELS:
                level = unreadable
                errors.append(_invalid(mode, given, f"must be one of {', '.join(LEVELS)}"))
        given = labels.get(f"{PREFIX}{mode}-version")
        if given is not None:
            minor = LATEST
            if found := _VERSION.fullmatch(given):
                minor = int(found[1])
            elif given != "latest":
                errors.append(_invalid(f"{mode}-version", given, 'must be "latest" or "v1.x"'))
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
