"""Which admission plugins there are, in which order they run, and which of them a configuration turns on."""

from __future__ import annotations

import importlib
from typing import Any

from kubist.admission import configuration
from kubist.admission.plugin import Plugin
from kubist.config import Config

ORDER = (
    "AlwaysAdmit",
    "NamespaceAutoProvision",
    "NamespaceLifecycle",
    "NamespaceExists",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "ServiceAccount",
    "NodeRestriction",
    "TaintNodesByCondition",
    "AlwaysPullImages",
    "ImagePolicyWebhook",
    "PodSecurity",
    "PodNodeSelector",
    "Priority",
    "DefaultTolerationSeconds",
    "PodTolerationRestriction",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "DefaultStorageClass",
    "StorageObjectInUseProtection",
    "PodGroupProtection",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "RuntimeClass",
    "CertificateApproval",
    "CertificateSigning",
    "ClusterTrustBundleAttest",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "DenyServiceExternalIPs",
    "PodTopologyLabels",
    "PodGroupWorkloadExists",
    "NodeDeclaredFeatureValidator",
    "JobValidation",
    "PodResizeValidator",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
    "ResourceQuota",
    "AlwaysDeny",
)

OFF_BY_DEFAULT = frozenset(
    (
        "AlwaysAdmit",
        "NamespaceAutoProvision",
        "NamespaceExists",
        "LimitPodHardAntiAffinityTopology",
        "NodeRestriction",
        "AlwaysPullImages",
        "ImagePolicyWebhook",
        "PodNodeSelector",
        "PodTolerationRestriction",
        "EventRateLimit",
        "ExtendedResourceToleration",
        "OwnerReferencesPermissionEnforcement",
        "DenyServiceExternalIPs",
        "AlwaysDeny",
    )
)

WITHOUT_EFFECT = frozenset(
    (
        "AlwaysAdmit",
        "EventRateLimit",
        "ImagePolicyWebhook",
        "JobValidation",
        "NodeDeclaredFeatureValidator",
        "PodGroupProtection",
        "PodGroupWorkloadExists",
    )
)
"""Names that are accepted: what they act on needs a configuration file or a feature that is off."""


def enabled(config: Config) -> list[str]:
    """The plugins that are on, in order; ValueError for names that do not exist or contradict."""
    on, off = set(config.enable_admission_plugins), set(config.disable_admission_plugins)
    for flag, names in (("enable", on), ("disable", off)):
        for name in sorted(names - set(ORDER)):
            raise ValueError(f'{flag}-admission-plugins plugin "{name}" is unknown')
    if on & off:
        listed = " ".join(sorted(on & off))
        raise ValueError(f"[{listed}] in enable-admission-plugins and disable-admission-plugins overlapped")
    return [name for name in ORDER if name in on or (name not in off and name not in OFF_BY_DEFAULT)]


def build(config: Config) -> list[Plugin]:
    """The plugins that are on and do something."""
    settings = configuration.load(config.admission_control_config_file)
    return [_load(name, settings.get(name)) for name in enabled(config) if name not in WITHOUT_EFFECT]


def _load(name: str, settings: dict[str, Any] | None) -> Plugin:
    module = importlib.import_module(f"kubist.admission.plugins.{name.lower()}")
    plugin: Plugin = getattr(module, name)(settings)
    return plugin
