"""Admission plugins: their order, the enabled plugins of a configuration, and their settings."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from kubist.api.admission.plugin import Plugin
from kubist.api.config import Config
from kubist.model import feature_gates
from kubist.model.meta.object import Object

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
        "JobValidation",
        "NodeDeclaredFeatureValidator",
        "PodGroupProtection",
        "PodGroupWorkloadExists",
    )
)
"""Plugins that are accepted without effect: AlwaysAdmit, and those whose feature gate is off."""

MISSING = {
    "EventRateLimit": "limit requests with FlowSchemas and PriorityLevelConfigurations",
    "ImagePolicyWebhook": "use a ValidatingWebhookConfiguration or a ValidatingAdmissionPolicy for pods",
}
"""Plugins that restrict clients and are not implemented, with the recommended replacement."""


GATES = {
    "MutatingAdmissionPolicy": "MutatingAdmissionPolicy",
    "PodTopologyLabelsAdmission": "PodTopologyLabels",
}
"""Feature gate → plugin that is on by default only with the gate."""


def enabled(config: Config) -> list[str]:
    """Names of the enabled plugins, in order. Raises ValueError for unknown or contradictory names."""
    if config.admission_control:
        return _exactly(config)
    on, off = set(config.enable_admission_plugins), set(config.disable_admission_plugins)
    for flag, names in (("enable", on), ("disable", off)):
        for name in sorted(names - set(ORDER)):
            raise ValueError(f'{flag}-admission-plugins plugin "{name}" is unknown')
    if on & off:
        listed = " ".join(sorted(on & off))
        raise ValueError(f"[{listed}] in enable-admission-plugins and disable-admission-plugins overlapped")
    for name in sorted(on & MISSING.keys()):
        raise ValueError(f'--enable-admission-plugins: "{name}" is not supported: {MISSING[name]}')
    gated = {
        plugin for gate, plugin in GATES.items() if not feature_gates.enabled(config.feature_gates, gate)
    }
    off_by_default = OFF_BY_DEFAULT | gated
    return [name for name in ORDER if name in on or (name not in off and name not in off_by_default)]


def _exactly(config: Config) -> list[str]:
    """Plugins of the deprecated flag `--admission-control`, in order."""
    if config.enable_admission_plugins or config.disable_admission_plugins:
        raise ValueError(
            "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive"
        )
    for name in config.admission_control:
        if name not in ORDER:
            raise ValueError(f'admission-control plugin "{name}" is unknown')
        if name in MISSING:
            raise ValueError(f'--admission-control: "{name}" is not supported: {MISSING[name]}')
    return [name for name in ORDER if name in config.admission_control]


def build(config: Config) -> list[Plugin]:
    """Enabled plugins that have an effect."""
    settings = _settings(config.admission_control_config_file)
    return [_load(name, settings.get(name)) for name in enabled(config) if name not in WITHOUT_EFFECT]


def _load(name: str, settings: dict[str, Any] | None) -> Plugin:
    module = importlib.import_module(f"kubist.api.admission.plugins.{name.lower()}")
    kind: type[Plugin] = getattr(module, name)
    if settings and kind.__init__ is Plugin.__init__:
        raise ValueError(
            f"--admission-control-config-file: a configuration of the plugin {name} is not supported; remove it"
        )
    return kind(settings)


_CONFIGURATION_GROUP = "apiserver.config.k8s.io"


def _settings(file: str) -> dict[str, Object]:
    """Settings by plugin name from an AdmissionConfiguration, inline or in separate files. Raises ValueError for an
    invalid file."""
    if not file:
        return {}
    where = Path(file)
    document = _read_settings(where)
    if document.get("kind") != "AdmissionConfiguration" or _CONFIGURATION_GROUP not in document.get(
        "apiVersion", ""
    ):
        raise ValueError(
            f"{file} is not an AdmissionConfiguration of {_CONFIGURATION_GROUP}: "
            "check its apiVersion and kind"
        )
    settings = {}
    for plugin in document.get("plugins") or ():
        inline = plugin.get("configuration")
        if inline is None and plugin.get("path"):
            inline = _read_settings(where.parent / plugin["path"])
        settings[plugin.get("name", "")] = inline or {}
    return settings


def _read_settings(file: Path) -> Object:
    # Saves start-up time: only --admission-control-config-file needs it.
    import yaml

    try:
        document = yaml.safe_load(file.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise ValueError(f"unable to read admission control configuration from {file}: {error}") from None
    if not isinstance(document, dict):
        raise ValueError(f"{file} is not a YAML mapping: it must contain one configuration object")
    return document
