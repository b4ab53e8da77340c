"""Values of `--emulated-version` and `--min-compatibility-version`, with the reference's words for mistakes."""

from __future__ import annotations

import re

FLAGS = {
    "emulated-version": ("emulation version", "1.36.0"),
    "min-compatibility-version": ("minCompatibilityVersion version", "1.36"),
}
"""Flag → name of the version in messages, and the highest version as messages show it."""
_LOWEST, _HIGHEST = (1, 33), (1, 36)


def mistake(name: str, values: list[str]) -> str:
    """Error message for values that kube-apiserver v1.36 rejects too; empty if there are none."""
    versions: dict[str, str] = {}
    for value in (part for text in values for part in text.split(",")):
        component, equals, version = value.partition("=")
        if not equals:
            component, version = "kube", value
        component, version = component.strip(), version.strip()
        match = re.fullmatch(r"v?(\d+)\.(\d+)(?:\.(\d+))?", version)
        if match is None:
            return f'could not parse "{version}" as version'
        if int(match[3] or 0):
            return f"patch version not allowed, got: {component}={version}"
        if component in versions:
            return f"duplicate version flag, {component}={versions[component]} and {component}={version}"
        versions[component] = version
    for component, version in versions.items():
        if component != "kube":
            return f"component not registered: {component}"
        major, minor = version.removeprefix("v").split(".")[:2]
        if not _LOWEST <= (int(major), int(minor)) <= _HIGHEST:
            label, highest = FLAGS[name]
            return f"{label} {version} is not between [1.33, {highest}]"
    return ""
