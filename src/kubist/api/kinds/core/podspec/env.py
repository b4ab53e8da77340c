"""Validation of environment variables, and of the downward API that they share with volumes."""

from __future__ import annotations

from kubist.api.kinds.core.podspec import paths
from kubist.base.caching import skip_validated
from kubist.model.meta import names
from kubist.model.meta.fields import FieldError, invalid, not_supported, required
from kubist.model.meta.object import Object

Errors = list[FieldError]

ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
FILE_KEYS = "fileKeyRef"
_KNOWN_FIELDS = {
    *ENV_FIELDS,
    *VOLUME_FIELDS,
    "spec.host",
    "spec.restartPolicy",
    "spec.schedulerName",
    "status.phase",
}
_RESOURCE_FIELDS = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_BYTE_DIVISORS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def _literal_names(variables: list[Object]) -> tuple[str, ...] | None:
    """Names of the variables if none has valueFrom, otherwise None. Without valueFrom, the names alone decide whether
    there are errors."""
    literals = tuple([variable.get("name", "") for variable in variables if "valueFrom" not in variable])
    return literals if len(literals) == len(variables) else None


@skip_validated(_literal_names)
def validate_env(variables: list[Object], path: str, noted: set[str]) -> Errors:
    """Validates variables. Adds to `noted` if a variable is read from a file."""
    errors: Errors = []
    for index, variable in enumerate(variables):
        name = variable.get("name", "")
        if not name:
            errors.append(required(f"{path}[{index}].name"))
        elif problems := names.env_var_name(name):
            errors += [invalid(f"{path}[{index}].name", name, problem) for problem in problems]
        if "valueFrom" in variable:
            errors += _value_from(variable, f"{path}[{index}].valueFrom", noted)
    return errors


def _value_from(variable: Object, path: str, noted: set[str]) -> Errors:
    source = variable["valueFrom"]
    if FILE_KEYS in source:
        noted.add(FILE_KEYS)
    errors: Errors = []
    if "fieldRef" in source:
        errors += validate_field_ref(source["fieldRef"], ENV_FIELDS, f"{path}.fieldRef")
    if "resourceFieldRef" in source:
        errors += validate_resource_field_ref(source["resourceFieldRef"], f"{path}.resourceFieldRef")
    for field in ("configMapKeyRef", "secretKeyRef"):
        if field in source:
            errors += _key_ref(source[field], f"{path}.{field}")
    if FILE_KEYS in source:
        errors += _file_key_ref(source[FILE_KEYS], f"{path}.{FILE_KEYS}")
    count = sum(field in source for field in _SOURCES)
    if not count:
        which = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        errors.append(invalid(path, "", f"must specify one of: {which}"))
    elif variable.get("value"):
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif count > 1:
        errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors


def validate_field_ref(ref: Object, supported: tuple[str, ...], path: str) -> Errors:
    """Validates a reference to a field of the pod. It may name one label or annotation: `metadata.labels['key']`."""
    field = ref.get("fieldPath", "")
    version = ref.get("apiVersion", "")
    if not version:
        return [required(f"{path}.apiVersion")]
    if not field:
        return [required(f"{path}.fieldPath")]
    if version != "v1":
        why = f"error converting fieldPath: unsupported pod version: {version}"
        return [invalid(f"{path}.fieldPath", field, why)]
    whole, bracket, key = field.removesuffix("']").partition("['")
    if whole and bracket and field.endswith("']"):
        if whole not in ("metadata.annotations", "metadata.labels"):
            why = f"error converting fieldPath: field label does not support subscript: {field}"
            return [invalid(f"{path}.fieldPath", field, why)]
        key = key.lower() if whole == "metadata.annotations" else key
        return [invalid(path, key, problem) for problem in names.qualified_name(key)]
    if field not in _KNOWN_FIELDS:
        why = f"error converting fieldPath: field label not supported: {field}"
        return [invalid(f"{path}.fieldPath", field, why)]
    field = "spec.nodeName" if field == "spec.host" else field
    return [] if field in supported else [not_supported(f"{path}.fieldPath", field, supported)]


def validate_resource_field_ref(ref: Object, path: str, *, volume: bool = False) -> Errors:
    """Validates a reference to a container's resource. In a volume containerName is required."""
    resource = ref.get("resource", "")
    errors: Errors = []
    if volume and not ref.get("containerName"):
        errors.append(required(f"{path}.containerName"))
    elif not resource:
        errors.append(required(f"{path}.resource"))
    elif resource not in _RESOURCE_FIELDS and not resource.startswith(_HUGE_PAGES):
        errors.append(not_supported(f"{path}.resource", resource, _RESOURCE_FIELDS))
    return errors + _divisor(resource, ref.get("divisor", "0"), f"{path}.divisor")


def _divisor(resource: str, divisor: str, path: str) -> Errors:
    if divisor == "0":
        return []
    kind = resource.partition(".")[2]
    if kind == "cpu" and divisor not in ("1m", "1"):
        return [invalid(path, resource, "only divisor's values 1m and 1 are supported with the cpu resource")]
    of_bytes = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}.get(kind)
    if resource.startswith(_HUGE_PAGES):
        of_bytes = "hugepages"
    if of_bytes and divisor not in _BYTE_DIVISORS:
        allowed = ", ".join(_BYTE_DIVISORS)
        why = f"only divisor's values {allowed} are supported with the {of_bytes} resource"
        return [invalid(path, resource, why)]
    return []


def _key_ref(ref: Object, path: str) -> Errors:
    name = ref.get("name", "")
    errors = [invalid(f"{path}.name", name, problem) for problem in names.dns_subdomain(name)]
    key = ref.get("key", "")
    if not key:
        return [*errors, required(f"{path}.key")]
    return errors + [invalid(f"{path}.key", key, problem) for problem in names.config_map_key(key)]


def _file_key_ref(ref: Object, path: str) -> Errors:
    errors: Errors = []
    key, volume, file = ref.get("key", ""), ref.get("volumeName", ""), ref.get("path", "")
    if not key:
        errors.append(required(f"{path}.key"))
    else:
        errors += [invalid(f"{path}.key", key, problem) for problem in names.env_var_name(key)]
    if not volume:
        errors.append(required(f"{path}.volumeName"))
    else:
        errors += [invalid(f"{path}.volumeName", volume, problem) for problem in names.dns_label(volume)]
    if not file:
        errors.append(required(f"{path}.path"))
    else:
        errors += paths.no_backsteps(file, f"{path}.path")
    return errors


def validate_env_from(sources: list[Object] | None, path: str) -> Errors:
    errors: Errors = []
    for index, source in enumerate(sources or ()):
        prefix = source.get("prefix")
        if prefix:
            problems = names.env_var_name(prefix)
            errors += [invalid(f"{path}[{index}].prefix", prefix, problem) for problem in problems]
        count = 0
        for field in ("configMapRef", "secretRef"):
            if field in source:
                count += 1
                where = f"{path}[{index}].{field}.name"
                name = source[field].get("name", "")
                if not name:
                    errors.append(required(where))
                else:
                    errors += [invalid(where, name, problem) for problem in names.dns_subdomain(name, True)]
        if not count:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif count > 1:
            errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors
