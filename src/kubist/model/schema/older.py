"""Versions that the reference can decode but does not serve, such as apps/v1beta1.

A patch may name such a version. Its result is then decoded as the served version with the same fields.
"""

from __future__ import annotations

_SAME_FIELDS = {
    "admissionregistration.k8s.io": (
        "v1",
        {
            "v1beta1": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration "
            "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration",
            "v1alpha1": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding ValidatingAdmissionPolicy "
            "ValidatingAdmissionPolicyBinding",
        },
    ),
    "apiregistration.k8s.io": ("v1", {"v1beta1": "APIService"}),
    "apps": (
        "v1",
        {
            "v1beta1": "ControllerRevision Deployment StatefulSet",
            "v1beta2": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
        },
    ),
    "batch": ("v1", {"v1beta1": "CronJob"}),
    "certificates.k8s.io": ("v1", {"v1beta1": "CertificateSigningRequest"}),
    "coordination.k8s.io": ("v1", {"v1beta1": "Lease"}),
    "discovery.k8s.io": ("v1", {"v1beta1": "EndpointSlice"}),
    "events.k8s.io": ("v1", {"v1beta1": "Event"}),
    "flowcontrol.apiserver.k8s.io": (
        "v1",
        {
            "v1beta1": "FlowSchema",
            "v1beta2": "FlowSchema",
            "v1beta3": "FlowSchema PriorityLevelConfiguration",
        },
    ),
    "networking.k8s.io": ("v1", {"v1beta1": "IPAddress IngressClass ServiceCIDR"}),
    "node.k8s.io": ("v1", {"v1beta1": "RuntimeClass"}),
    "policy": ("v1", {"v1beta1": "PodDisruptionBudget"}),
    "rbac.authorization.k8s.io": (
        "v1",
        {
            "v1beta1": "ClusterRole ClusterRoleBinding Role RoleBinding",
            "v1alpha1": "ClusterRole Role",
        },
    ),
    "resource.k8s.io": (
        "v1",
        {
            "v1beta1": "DeviceClass",
            "v1beta2": "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
        },
    ),
    "scheduling.k8s.io": ("v1", {"v1beta1": "PriorityClass"}),
    "storage.k8s.io": (
        "v1",
        {
            "v1beta1": "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass",
            "v1alpha1": "CSIStorageCapacity VolumeAttachment VolumeAttributesClass",
        },
    ),
}
"""Served version by group, and the older versions with their kinds that have the same fields."""

SERVED_AS: dict[str, str] = {
    f"{group}/{version}/{kind}": f"{group}/{current}"
    for group, (current, versions) in _SAME_FIELDS.items()
    for version, kinds in versions.items()
    for kind in kinds.split()
} | {
    "extensions/v1beta1/DaemonSet": "apps/v1",
    "extensions/v1beta1/Deployment": "apps/v1",
    "extensions/v1beta1/NetworkPolicy": "networking.k8s.io/v1",
    "extensions/v1beta1/ReplicaSet": "apps/v1",
}
"""Served version with the same fields, by `group/version/kind` of an older version."""
