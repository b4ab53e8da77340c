"""Kinds that kube-apiserver's schemes know, and how its messages name them.

A scheme is a table of kinds. It knows more kinds than the server serves: versions that are no longer served, and
options that every group has. Messages about a body of an unexpected kind tell these cases apart."""

from __future__ import annotations

from functools import cache

from kubist.model.schema.catalog import is_builtin, kinds, retired

LEGACY = "pkg/api/legacyscheme/scheme.go:30"
CUSTOM = "k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go:781"
OPTIONS = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"
_EXTENSIONS = "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:55"
_AGGREGATOR = "k8s.io/kube-aggregator/pkg/apiserver/scheme/scheme.go:28"
_OWN = {"apiextensions.k8s.io": _EXTENSIONS, "apiregistration.k8s.io": _AGGREGATOR}

_UNVERSIONED = frozenset(("Status", "APIVersions", "APIGroupList", "APIGroup", "APIResourceList"))
_IN_EVERY_VERSION = frozenset(
    [
        "ListOptions",
        "GetOptions",
        "DeleteOptions",
        "CreateOptions",
        "UpdateOptions",
        "PatchOptions",
        "WatchEvent",
    ]
)
_META = frozenset(("Table", "TableOptions", "PartialObjectMetadata", "PartialObjectMetadataList"))
_PACKAGES = {"": "core", "events.k8s.io": "core", "internal.apiserver.k8s.io": "apiserverinternal"}


def scheme_of(group: str) -> str:
    """The scheme that holds the kinds of a built-in group."""
    return _OWN.get(group, LEGACY)


def is_registered(scheme: str, group: str, version: str, kind: str) -> bool:
    """Whether a scheme knows a kind."""
    if kind in _UNVERSIONED:
        return True
    if scheme == OPTIONS:
        if kind in ("DeleteOptions", "CreateOptions", "UpdateOptions"):
            return True
        known = _META | _IN_EVERY_VERSION if version == "v1" else _META if version == "v1beta1" else ()
        return group == "meta.k8s.io" and kind in known
    if scheme_of(group) != scheme or group == "meta.k8s.io":
        return False
    if kind in _IN_EVERY_VERSION:
        return (group, version) in _versions()
    return is_builtin(group, version, kind) or kind in retired().get(f"{group}/{version}", ())


@cache
def _versions() -> frozenset[tuple[str, str]]:
    named = {tuple(name.split("/")[:2]) for name in kinds()}
    named |= {tuple(name.split("/")) for name in retired()}
    return frozenset((group, version) for group, version in named)


def not_registered(scheme: str, api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    named = (
        f'the internal version of group "{group}"' if version == "__internal" else f'version "{api_version}"'
    )
    return f'no kind "{kind}" is registered for {named} in scheme "{scheme}"'


def unknown_conversion(version: str, kind: str, group: str, target_kind: str) -> str:
    """Error text: the scheme cannot convert a kind in its version to the internal version of the expected kind."""
    if kind in _IN_EVERY_VERSION or kind in _UNVERSIONED:
        version = "v1"
    package = _PACKAGES.get(group) or group.partition(".")[0]
    return f"converting ({version}.{kind}) to ({package}.{target_kind}): unknown conversion"
