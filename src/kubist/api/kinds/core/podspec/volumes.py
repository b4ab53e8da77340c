"""Validation of a pod's volumes: exactly one source each, and the rules of each source in the order of the checks."""

from __future__ import annotations

import re
from collections.abc import Callable

from kubist.api.kinds.core.podspec import paths
from kubist.api.kinds.core.podspec.options import Options
from kubist.api.kinds.core.podspec.projected import (
    validate_downward_api,
    validate_items,
    validate_mode,
    validate_projected,
)
from kubist.api.kinds.core.podspec.volume_claims import validate_claim_template
from kubist.api.kinds.storage.common import validate_driver_name
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import names
from kubist.model.meta.fields import FieldError, duplicate, forbidden, invalid, not_supported, required
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import parse_quantity

Errors = list[FieldError]
Source = Callable[[Object, str, Options], Errors]

HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_IQN_FORMATS = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([a-zA-Z0-9\-.]+)(:[^,;*&$|\s]+)$"),
    "eui": re.compile("^eui.[a-zA-Z0-9]{16}$"),
    "naa": re.compile("^naa.[a-zA-Z0-9]{32}$"),
}
_AZURE_URIS = {
    True: "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
    False: "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
}


def _nothing(_source: Object, _path: str, _options: Options) -> Errors:
    return []


def requiring(*fields: str) -> Source:
    """Validator that only checks that some fields are set."""

    def validate(source: Object, path: str, _options: Options) -> Errors:
        return [required(f"{path}.{field}") for field in fields if not source.get(field)]

    return validate


def _empty_dir(source: Object, path: str, _options: Options) -> Errors:
    limit = source.get("sizeLimit")
    if limit is not None and parse_quantity(limit).nanos < 0:
        return [forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def validate_host_path(source: Object, path: str, _options: Options | None = None) -> Errors:
    target = source.get("path", "")
    if not target:
        return [required(f"{path}.path")]
    errors = paths.no_backsteps(target, f"{path}.path")
    kind = source.get("type")
    if kind is not None and kind not in HOST_PATH_TYPES:
        errors.append(not_supported(f"{path}.type", kind, HOST_PATH_TYPES))
    return errors


def _git_repo(source: Object, path: str, _options: Options) -> Errors:
    errors = [] if source.get("repository") else [required(f"{path}.repository")]
    return errors + paths.local_descending(source.get("directory", ""), f"{path}.directory")


def _disk(identity: str) -> Source:
    def validate(source: Object, path: str, _options: Options) -> Errors:
        errors = [] if source.get(identity) else [required(f"{path}.{identity}")]
        partition = source.get("partition", 0)
        if not 0 <= partition <= 255:
            errors.append(invalid(f"{path}.partition", partition, "must be between 1 and 255, inclusive"))
        return errors

    return validate


def _secret(source: Object, path: str, _options: Options) -> Errors:
    errors = [] if source.get("secretName") else [required(f"{path}.secretName")]
    return errors + validate_mode(source, "defaultMode", path) + validate_items(source, path)


def _config_map(source: Object, path: str, _options: Options) -> Errors:
    errors = [] if source.get("name") else [required(f"{path}.name")]
    return errors + validate_mode(source, "defaultMode", path) + validate_items(source, path)


def validate_nfs(source: Object, path: str, _options: Options | None = None) -> Errors:
    errors = [required(f"{path}.{field}") for field in ("server", "path") if not source.get(field)]
    if not source.get("path", "").startswith("/"):
        errors.append(invalid(f"{path}.path", source.get("path", ""), "must be an absolute path"))
    return errors


IQN_PREFIXES = " starting with iqn, eui, or naa"
"""Suffix of the message for pods. The message for persistent volumes lacks it."""


def _initiator(name: str, path: str) -> Errors:
    pattern = _IQN_FORMATS.get(name[:3])
    if pattern is None:
        return [invalid(path, name, f"must be valid format{IQN_PREFIXES}")]
    return [] if pattern.search(name) else [invalid(path, name, "must be valid format")]


def validate_iscsi(source: Object, path: str, _options: Options | None = None) -> Errors:
    errors = [] if source.get("targetPortal") else [required(f"{path}.targetPortal")]
    iqn = source.get("iqn", "")
    errors += _initiator(iqn, f"{path}.iqn") if iqn else [required(f"{path}.iqn")]
    lun = source.get("lun", 0)
    if not 0 <= lun <= 255:
        errors.append(invalid(f"{path}.lun", lun, "must be between 0 and 255, inclusive"))
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and "secretRef" not in source:
        errors.append(required(f"{path}.secretRef"))
    if "initiatorName" in source:
        errors += _initiator(source["initiatorName"], f"{path}.initiatorname")
    return errors


def validate_flocker(source: Object, path: str, _options: Options | None = None) -> Errors:
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    errors: Errors = []
    if not name and not uuid:
        errors.append(required(path, "one of datasetName and datasetUUID is required"))
    if name and uuid:
        why = "datasetName and datasetUUID can not be specified simultaneously"
        errors.append(invalid(path, "resource", why))
    if "/" in name:
        errors.append(invalid(f"{path}.datasetName", name, "must not contain '/'"))
    return errors


def _cinder(source: Object, path: str, _options: Options) -> Errors:
    errors = [] if source.get("volumeID") else [required(f"{path}.volumeID")]
    if "secretRef" in source and not source["secretRef"].get("name"):
        errors.append(required(f"{path}.secretRef.name"))
    return errors


def validate_quobyte(source: Object, path: str, _options: Options | None = None) -> Errors:
    pairs = "must be a host:port pair or multiple pairs separated by commas"
    registry = source.get("registry", "")
    errors: Errors = []
    if not registry:
        errors.append(required(f"{path}.registry", pairs))
    elif len(source.get("tenant", "")) >= 65:
        why = "must be a UUID and may not exceed a length of 64 characters"
        errors.append(required(f"{path}.tenant", why))
    else:
        errors += [
            invalid(f"{path}.registry", registry, pairs)
            for pair in registry.split(",")
            if not _is_host_port(pair)
        ]
    if not source.get("volume"):
        errors.append(required(f"{path}.volume"))
    return errors


_is_host_port = re.compile(r"(\[[^\[\]]*\]|[^\[\]:]*):[^\[\]:]*").fullmatch


def validate_fc(source: Object, path: str, _options: Options | None = None) -> Errors:
    targets, wwids, lun = source.get("targetWWNs"), source.get("wwids"), source.get("lun")
    errors: Errors = []
    if not targets and not wwids:
        why = "must specify either targetWWNs or wwids, but not both"
        errors.append(required(f"{path}.targetWWNs", why))
    if targets and wwids:
        why = "targetWWNs and wwids can not be specified simultaneously"
        errors.append(invalid(f"{path}.targetWWNs", targets, why))
    if targets:
        if lun is None:
            errors.append(required(f"{path}.lun", "lun is required if targetWWNs is specified"))
        elif not 0 <= lun <= 255:
            errors.append(invalid(f"{path}.lun", lun, "must be between 0 and 255, inclusive"))
    return errors


def validate_flex(source: Object, path: str, _options: Options | None = None) -> Errors:
    errors = [] if source.get("driver") else [required(f"{path}.driver")]
    for key in sorted(source.get("options") or ()):
        domain = "." + key.partition("/")[0].lower()
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            why = "kubernetes.io and k8s.io namespaces are reserved"
            errors.append(invalid(f"{path}.options[{key}]", key, why))
    return errors


def validate_azure_disk(source: Object, path: str, _options: Options | None = None) -> Errors:
    errors = [required(f"{path}.{field}") for field in ("diskName", "diskURI") if not source.get(field)]
    for field, supported in (
        ("cachingMode", ("None", "ReadOnly", "ReadWrite")),
        ("kind", ("Dedicated", "Managed", "Shared")),
    ):
        if field in source and source[field] not in supported:
            errors.append(not_supported(f"{path}.{field}", source[field], supported))
    if "kind" in source:
        managed = source["kind"] == "Managed"
        uri = source.get("diskURI", "")
        if not uri.startswith("/subscriptions/" if managed else "https://"):
            errors.append(not_supported(f"{path}.diskURI", uri, [_AZURE_URIS[managed]]))
    return errors


def _storage_os(source: Object, path: str, _options: Options) -> Errors:
    name, namespace = source.get("volumeName", ""), source.get("volumeNamespace", "")
    errors: Errors = []
    if not name:
        errors.append(required(f"{path}.volumeName"))
    else:
        errors += [invalid(f"{path}.volumeName", name, problem) for problem in names.dns_label(name)]
    if namespace:
        problems = names.dns_label(namespace)
        errors += [invalid(f"{path}.volumeNamespace", namespace, problem) for problem in problems]
    if "secretRef" in source and not source["secretRef"].get("name"):
        errors.append(required(f"{path}.secretRef.name"))
    return errors


def _csi(source: Object, path: str, _options: Options) -> Errors:
    errors = validate_driver_name(source.get("driver", ""), f"{path}.driver")
    if "nodePublishSecretRef" in source:
        name = source["nodePublishSecretRef"].get("name", "")
        if not name:
            errors.append(required(f"{path}.nodePublishSecretRef.name"))
        else:
            errors += [invalid(f"{path}.name", name, problem) for problem in names.dns_subdomain(name)]
    return errors


def _ephemeral(source: Object, path: str, _options: Options) -> Errors:
    if "volumeClaimTemplate" not in source:
        return [required(f"{path}.volumeClaimTemplate")]
    return validate_claim_template(source["volumeClaimTemplate"], f"{path}.volumeClaimTemplate")


def _image(source: Object, path: str, options: Options) -> Errors:
    errors: Errors = []
    if options.is_pod and not source.get("reference"):
        errors.append(required(f"{path}.reference"))
    return errors + validate_pull_policy(source.get("pullPolicy", ""), f"{path}.pullPolicy")


def validate_pull_policy(policy: str, path: str) -> Errors:
    if not policy:
        return [required(path)]
    return [] if policy in PULL_POLICIES else [not_supported(path, policy, PULL_POLICIES)]


SOURCES: dict[str, Source] = {
    "emptyDir": _empty_dir,
    "hostPath": validate_host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": _disk("pdName"),
    "awsElasticBlockStore": _disk("volumeID"),
    "secret": _secret,
    "nfs": validate_nfs,
    "iscsi": validate_iscsi,
    "glusterfs": requiring("endpoints", "path"),
    "flocker": validate_flocker,
    "persistentVolumeClaim": requiring("claimName"),
    "rbd": requiring("monitors", "image"),
    "cinder": _cinder,
    "cephfs": requiring("monitors"),
    "quobyte": validate_quobyte,
    "downwardAPI": validate_downward_api,
    "fc": validate_fc,
    "flexVolume": validate_flex,
    "configMap": _config_map,
    "azureFile": requiring("secretName", "shareName"),
    "vsphereVolume": requiring("volumePath"),
    "photonPersistentDisk": requiring("pdID"),
    "portworxVolume": requiring("volumeID"),
    "azureDisk": validate_azure_disk,
    "storageos": _storage_os,
    "projected": validate_projected,
    "scaleIO": requiring("gateway", "system", "volumeName"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}


_PATHS = {"gcePersistentDisk": "persistentDisk"}
"""Source → its name in error paths, where that differs from the field."""
_CLASHES = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""Source → its name in the error for a second source, where that differs from the field."""


def validate_volumes(
    volumes: list[Object] | None, pod_name: str, path: str, options: Options
) -> tuple[dict[str, Object], Errors]:
    """Valid volumes by name, and the errors of the others. `pod_name` is empty for a template."""
    if not volumes:
        return {}, []
    errors: Errors = []
    valid: dict[str, Object] = {}
    claims = {
        f"{pod_name}-{volume.get('name', '')}" for volume in volumes if pod_name and "ephemeral" in volume
    }
    for index, volume in enumerate(volumes):
        where = f"{path}[{index}]"
        name = volume.get("name", "")
        volume_errors = _source(volume, name, pod_name, where, options)
        if not name:
            volume_errors.append(required(f"{where}.name"))
        else:
            volume_errors += [invalid(f"{where}.name", name, problem) for problem in names.dns_label(name)]
        if name in valid:
            volume_errors.append(duplicate(f"{where}.name", name))
        if volume_errors:
            errors += volume_errors
        else:
            valid[name] = volume
        if claims and "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"].get("claimName", "")
            if claim in claims:
                why = "must not reference a PVC that gets created for an ephemeral volume"
                errors.append(invalid(f"{where}.persistentVolumeClaim.claimName", claim, why))
    return valid, errors


def _source(volume: Object, name: str, pod_name: str, path: str, options: Options) -> Errors:
    sources = [source for source in SOURCES if source in volume]
    if not sources:
        return [required(path, "must specify a volume type")]
    first = sources[0]
    errors = SOURCES[first](volume[first], f"{path}.{_PATHS.get(first, first)}", options)
    if first == "ephemeral" and pod_name and name:
        claim = f"{pod_name}-{name}"
        errors += [
            invalid(f"{path}.name", name, f"PVC name {quoted(claim)}: {problem}")
            for problem in names.dns_subdomain(claim)
        ]
    for source in sources:
        if source != first:
            clash = f"{path}.{_CLASHES.get(source, source)}"
            errors.append(forbidden(clash, "may not specify more than 1 volume type"))
        if source == "iscsi" and "initiatorName" in volume["iscsi"]:
            portal = volume["iscsi"].get("targetPortal", "")
            if len(f"{name}:{portal}".encode()) > 64:
                why = (
                    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if "
                    "iscsi.initiatorName is specified."
                )
                errors.append(invalid(f"{path}.name", name, why))
    return errors
