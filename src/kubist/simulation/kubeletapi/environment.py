"""Environment variables and files that a simulated container would have, as far as the API server knows them."""

from __future__ import annotations

import base64
import posixpath
import re
from collections.abc import Iterator
from typing import Any

from kubist.meta.object import Object
from kubist.resources.context import Objects
from kubist.simulation.kubeletapi.containers import spec_of

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_reference = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")


def hostname(pod: Object) -> str:
    spec = pod["spec"]
    return str(spec.get("hostname") or pod["metadata"]["name"])[:63]


def environment(pod: Object, name: str, objects: Objects) -> dict[str, str]:
    """Environment variables of a container, with values of ConfigMaps, Secrets and fields. Values that cannot be
    known are left out."""
    container, namespace = spec_of(pod, name), pod["metadata"]["namespace"]
    found = {"PATH": _PATH, "HOSTNAME": hostname(pod), "HOME": "/root"}
    service = objects.get("services", "kubernetes", "default")
    if service is not None and pod["spec"].get("enableServiceLinks", True):
        address, port = service["spec"].get("clusterIP", ""), str(service["spec"]["ports"][0]["port"])
        found |= {"KUBERNETES_SERVICE_HOST": address, "KUBERNETES_SERVICE_PORT": port}
    for source in container.get("envFrom") or ():
        for kind, data in _sources(source, objects, namespace):
            prefix = source.get("prefix", "")
            found |= {f"{prefix}{key}": _text(kind, value) for key, value in data.items()}
    for variable in container.get("env") or ():
        value = _value(variable, pod, container, objects)
        if value is not None:
            found[variable["name"]] = expanded(value, found)
    return found


def expanded(text: str, values: dict[str, str]) -> str:
    """Text with `$(NAME)` replaced by variables, as in env values, commands and arguments."""

    def replacement(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return values.get(match[1], match[0])

    return _reference.sub(replacement, text)


def _sources(source: Object, objects: Objects, namespace: str) -> Iterator[tuple[str, dict[str, str]]]:
    for field, resource in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
        if field in source:
            obj = objects.get(resource, source[field].get("name", ""), namespace) or {}
            yield resource, obj.get("data") or {}


def _value(variable: Object, pod: Object, container: Object, objects: Objects) -> str | None:
    source = variable.get("valueFrom")
    if not source:
        return str(variable.get("value", ""))
    for field, resource in (("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")):
        if field in source:
            obj = objects.get(resource, source[field].get("name", ""), pod["metadata"]["namespace"]) or {}
            value = (obj.get("data") or {}).get(source[field]["key"])
            return None if value is None else _text(resource, value)
    if "fieldRef" in source:
        return field_value(pod, source["fieldRef"]["fieldPath"])
    if "resourceFieldRef" in source:
        kind, _, resource = source["resourceFieldRef"]["resource"].partition(".")
        amount = ((container.get("resources") or {}).get(kind) or {}).get(resource)
        return None if amount is None else str(amount)
    return None


def _text(resource: str, value: str) -> str:
    return base64.b64decode(value).decode(errors="replace") if resource == "secrets" else value


def field_value(pod: Object, path: str) -> str | None:
    """Value of a downward API field, such as `metadata.name` or `metadata.labels['app']`."""
    match = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
    if match:
        return str((pod["metadata"].get(match[1]) or {}).get(match[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        held = pod["metadata"].get(path.partition(".")[2]) or {}
        return "\n".join(f'{key}="{value}"' for key, value in sorted(held.items()))
    if path == "status.podIPs":
        return ",".join(each["ip"] for each in (pod.get("status") or {}).get("podIPs") or ())
    value: Any = pod
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return None if value is None else str(value)


def known_files(pod: Object, name: str, objects: Objects) -> dict[str, bytes]:
    """Files of a container: /etc/hostname, and volumes of ConfigMaps, Secrets and fields, by absolute path."""
    found = {"/etc/hostname": f"{hostname(pod)}\n".encode()}
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    for mount in spec_of(pod, name).get("volumeMounts") or ():
        volume = volumes.get(mount["name"], {})
        for source in (volume.get("projected") or {}).get("sources") or (volume,):
            for path, content in _volume_files(source, pod, objects):
                if mount.get("subPath"):
                    if path == mount["subPath"]:
                        found[posixpath.normpath(mount["mountPath"])] = content
                else:
                    found[posixpath.normpath(posixpath.join(mount["mountPath"], path))] = content
    return found


def _volume_files(source: Object, pod: Object, objects: Objects) -> Iterator[tuple[str, bytes]]:
    namespace = pod["metadata"]["namespace"]
    for field, resource, key in (("configMap", "configmaps", "name"), ("secret", "secrets", "secretName")):
        if field in source:
            wanted = source[field].get(key) or source[field].get("name") or ""
            obj = objects.get(resource, wanted, namespace) or {}
            data = {path: _text(resource, text).encode() for path, text in (obj.get("data") or {}).items()}
            data |= {path: base64.b64decode(text) for path, text in (obj.get("binaryData") or {}).items()}
            items = source[field].get("items")
            if items:
                data = {item["path"]: data[item["key"]] for item in items if item["key"] in data}
            yield from data.items()
    for item in (source.get("downwardAPI") or {}).get("items") or ():
        value = field_value(pod, (item.get("fieldRef") or {}).get("fieldPath", ""))
        if value is not None:
            yield item["path"], value.encode()
