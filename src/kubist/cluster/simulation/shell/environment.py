"""Environment variables and files that a simulated container would have, as far as the API server knows them."""

from __future__ import annotations

import base64
import posixpath
import re
from collections.abc import Iterator
from typing import Any, Protocol

from kubist.cluster.simulation.shell.budget import EXEC
from kubist.model.meta.object import Object

ENVIRONMENT_LIMIT = 2 * 1024 * 1024
"""Maximum characters of all environment variables. Further ones are left out."""
FILES_LIMIT = 16 * 1024 * 1024
"""Maximum bytes of all files of volumes. Further ones are left out."""
TERMINATION_LOG = "/dev/termination-log"
WORDS_LIMIT = 1000
"""Maximum number of words in a simulated command with its arguments."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_reference = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")


class Reading(Protocol):
    """Reads objects of the server."""

    def get(self, resource: str, name: str, namespace: str) -> Object | None: ...


def hostname(pod: Object) -> str:
    spec = pod["spec"]
    return str(spec.get("hostname") or pod["metadata"]["name"])[:63]


def environment(pod: Object, container: Object, objects: Reading | None) -> dict[str, str]:
    """Environment variables of a container, with values of ConfigMaps, Secrets and fields. Values that cannot be
    known are left out."""
    namespace = pod["metadata"]["namespace"]
    objects = _Once(objects)
    left = ENVIRONMENT_LIMIT
    variables = {"PATH": _PATH, "HOSTNAME": hostname(pod), "HOME": "/root"}
    service = objects.get("services", "kubernetes", "default")
    if service is not None and pod["spec"].get("enableServiceLinks", True):
        address, port = service["spec"].get("clusterIP", ""), str(service["spec"]["ports"][0]["port"])
        variables |= {"KUBERNETES_SERVICE_HOST": address, "KUBERNETES_SERVICE_PORT": port}
    for source in container.get("envFrom") or ():
        for kind, data in _sources(source, objects, namespace):
            prefix = source.get("prefix", "")
            left -= sum(len(prefix) + len(key) + len(value) for key, value in data.items())
            if left < 0:
                return variables
            variables |= {f"{prefix}{key}": _text(kind, value) for key, value in data.items()}
    for variable in container.get("env") or ():
        value = _value(variable, pod, container, objects)
        if value is None:
            continue
        try:
            text = expanded(value, variables)
        except ValueError:
            continue
        left -= len(value) + len(text)
        if left < 0:
            return variables
        variables[variable["name"]] = text
    return variables


def expanded(text: str, values: dict[str, str]) -> str:
    """Text with `$(NAME)` replaced by variables, as in env values, commands and arguments. ValueError if it is longer
    than a word of a script may be."""
    left = EXEC.word

    def replacement(match: re.Match[str]) -> str:
        nonlocal left
        if match[0] == "$$":
            return "$"
        value = values.get(match[1], match[0])
        left -= len(value)
        if left < 0:
            raise ValueError
        return value

    return _reference.sub(replacement, text)


def command_of(container: Object, env: dict[str, str]) -> list[str]:
    """Command of a container with its arguments; empty if it has none, or if they are too long."""
    words = (*(container.get("command") or ()), *(container.get("args") or ()))
    if len(words) > WORDS_LIMIT:
        return []
    command, size = [], 0
    for word in words:
        try:
            command.append(expanded(word, env))
        except ValueError:  # too long
            return []
        size += len(command[-1])
        if size > EXEC.words:
            return []
    return command


class _Once:
    """Objects of the server. Each is read once, although a pod may refer to it thousands of times. Without a server,
    only values that the pod itself has are known."""

    def __init__(self, objects: Reading | None) -> None:
        self._objects = objects
        self._read: dict[tuple[str, str, str], Object | None] = {}

    def get(self, resource: str, name: str, namespace: str) -> Object | None:
        key = (resource, name, namespace)
        if key not in self._read:
            self._read[key] = self._objects.get(*key) if self._objects is not None else None
        return self._read[key]


def _sources(source: Object, objects: Reading, namespace: str) -> Iterator[tuple[str, dict[str, str]]]:
    for field, resource in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
        if field in source:
            obj = objects.get(resource, source[field].get("name", ""), namespace) or {}
            yield resource, obj.get("data") or {}


def _value(variable: Object, pod: Object, container: Object, objects: Reading) -> str | None:
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
        mapping = pod["metadata"].get(path.partition(".")[2]) or {}
        return "\n".join(f'{key}="{value}"' for key, value in sorted(mapping.items()))
    if path == "status.podIPs":
        return ",".join(each["ip"] for each in (pod.get("status") or {}).get("podIPs") or ()) or None
    value: Any = pod
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return None if value is None else str(value)


def known_files(pod: Object, container: Object, objects: Reading | None) -> dict[str, bytes]:
    """Files of a container: /etc/hostname, its termination log, and volumes of ConfigMaps, Secrets and fields, by
    absolute path."""
    log = container.get("terminationMessagePath") or TERMINATION_LOG
    files = {"/etc/hostname": f"{hostname(pod)}\n".encode(), posixpath.normpath(log): b""}
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    objects = _Once(objects)
    left = FILES_LIMIT
    for mount in container.get("volumeMounts") or ():
        volume = volumes.get(mount["name"], {})
        for source in (volume.get("projected") or {}).get("sources") or (volume,):
            for path, content in _volume_files(source, pod, objects):
                left -= len(path) + len(content)
                if left < 0:
                    return files
                if mount.get("subPath"):
                    if path == mount["subPath"]:
                        files[posixpath.normpath(mount["mountPath"])] = content
                else:
                    files[posixpath.normpath(posixpath.join(mount["mountPath"], path))] = content
    return files


def _volume_files(source: Object, pod: Object, objects: Reading) -> Iterator[tuple[str, bytes]]:
    namespace = pod["metadata"]["namespace"]
    for field, resource, key in (("configMap", "configmaps", "name"), ("secret", "secrets", "secretName")):
        if field in source:
            name = source[field].get(key) or source[field].get("name") or ""
            obj = objects.get(resource, name, namespace) or {}
            data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
            items = source[field].get("items")
            pairs = [(item["path"], item["key"]) for item in items] if items else None
            for path, key in pairs or [(key, key) for key in (*data, *binary)]:
                if key in data:
                    yield path, _text(resource, data[key]).encode()
                elif key in binary:
                    yield path, base64.b64decode(binary[key])
    for item in (source.get("downwardAPI") or {}).get("items") or ():
        value = field_value(pod, (item.get("fieldRef") or {}).get("fieldPath", ""))
        if value is not None:
            yield item["path"], value.encode()
