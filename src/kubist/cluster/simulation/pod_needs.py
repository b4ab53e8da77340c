"""Objects that a pod needs before its containers start: ConfigMaps, Secrets, claims and the service account.

The messages are the kubelet's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kubist.model.meta.object import Object

Lookup = Callable[[str, str], Object | None]
"""Object of the pod's namespace, by resource and name. It must not be changed."""

CONFIG_MAPS = "configmaps"
SECRETS = "secrets"
CLAIMS = "persistentvolumeclaims"
SERVICE_ACCOUNTS = "serviceaccounts"
RESOURCES = (CONFIG_MAPS, SECRETS, CLAIMS, SERVICE_ACCOUNTS)
ROOT_CA = "kube-root-ca.crt"
"""ConfigMap in every namespace. A simulated pod does not wait for it."""


@dataclass(slots=True)
class Missing:
    """Objects or keys that a pod needs and that do not exist."""

    volumes: list[str] = field(default_factory=list)
    """Messages of FailedMount Events. No container starts while there is one."""
    containers: dict[str, str] = field(default_factory=dict)
    """Message of CreateContainerConfigError by the name of the container."""
    objects: set[tuple[str, str]] = field(default_factory=set)
    """Resource and name of the objects to wait for."""
    pull_secrets: list[str] = field(default_factory=list)
    """Names of imagePullSecrets. The containers start without them, with a Warning Event."""


def missing_for(pod: Object, lookup: Lookup) -> Missing | None:
    """None if nothing is missing."""
    search = _Search(pod["metadata"].get("namespace", ""), lookup)
    spec = pod["spec"]
    for volume in spec.get("volumes") or ():
        search.volume(volume, spec.get("serviceAccountName") or "default", pod)
    for part in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(part) or ():
            if ("env" in container or "envFrom" in container) and (problem := search.environment(container)):
                search.missing.containers[container["name"]] = problem
    for secret in spec.get("imagePullSecrets") or ():
        if (name := secret.get("name")) and lookup(SECRETS, name) is None:
            search.missing.pull_secrets.append(name)
    return search.missing if search.missing.objects or search.missing.pull_secrets else None


class _Search:
    def __init__(self, namespace: str, lookup: Lookup) -> None:
        self.namespace = namespace
        self.lookup = lookup
        self.missing = Missing()

    def volume(self, volume: Object, service_account: str, pod: Object) -> None:
        name = volume["name"]
        claim = ""
        if "projected" in volume:
            problems = self.projected(volume["projected"], service_account)
            if problems:
                text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
                self.fail_setup(name, text)
        elif "configMap" in volume:
            self.setup(name, CONFIG_MAPS, volume["configMap"])
        elif "secret" in volume:
            source = volume["secret"]
            self.setup(name, SECRETS, {**source, "name": source.get("secretName", "")})
        elif "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]["claimName"]
        elif "ephemeral" in volume:
            claim = f"{pod['metadata'].get('name', '')}-{name}"
        if claim and (problem := self.claim(claim)):
            self.missing.volumes.append(
                f"Unable to attach or mount volumes: unmounted volumes=[{name}], unattached volumes=[], "
                f"failed to process volumes=[{name}]: error processing PVC {self.namespace}/{claim}: {problem}"
            )

    def setup(self, name: str, resource: str, source: Object) -> None:
        if problem := self.source(resource, source):
            self.fail_setup(name, problem)

    def fail_setup(self, name: str, problem: str) -> None:
        self.missing.volumes.append(f'MountVolume.SetUp failed for volume "{name}" : {problem}')

    def projected(self, projected: Object, service_account: str) -> list[str]:
        problems = []
        for source in projected.get("sources") or ():
            problem = ""
            if "configMap" in source:
                if source["configMap"].get("name") != ROOT_CA:
                    problem = self.source(CONFIG_MAPS, source["configMap"])
            elif "secret" in source:
                problem = self.source(SECRETS, source["secret"])
            elif "serviceAccountToken" in source and self.lookup(SERVICE_ACCOUNTS, service_account) is None:
                self.missing.objects.add((SERVICE_ACCOUNTS, service_account))
                problem = f'failed to fetch token: serviceaccounts "{service_account}" not found'
            if problem:
                problems.append(problem)
        return problems

    def source(self, resource: str, source: Object) -> str:
        """Problem of a ConfigMap or Secret in a volume."""
        name = source.get("name", "")
        obj = self.lookup(resource, name)
        if obj is None:
            return "" if source.get("optional") else self.absent(resource, name)
        if source.get("optional"):
            return ""
        for item in source.get("items") or ():
            if not _has_key(obj, item["key"]):
                self.missing.objects.add((resource, name))
                if resource == CONFIG_MAPS:
                    return f"configmap references non-existent config key: {item['key']}"
                return f"references non-existent secret key: {item['key']}"
        return ""

    def claim(self, name: str) -> str:
        claim = self.lookup(CLAIMS, name)
        if claim is None:
            self.missing.objects.add((CLAIMS, name))
            return f'failed to fetch PVC from API server: persistentvolumeclaims "{name}" not found'
        if (claim.get("status") or {}).get("phase") != "Bound":
            self.missing.objects.add((CLAIMS, name))
            return "PVC is not bound"
        return ""

    def environment(self, container: Object) -> str:
        """First problem of the environment variables of a container."""
        for source in container.get("envFrom") or ():
            for part, resource in (("configMapRef", CONFIG_MAPS), ("secretRef", SECRETS)):
                reference = source.get(part)
                if reference is None or reference.get("optional"):
                    continue
                if self.lookup(resource, reference.get("name", "")) is None:
                    return self.absent(resource, reference.get("name", ""))
        for variable in container.get("env") or ():
            value = variable.get("valueFrom")
            if value and (problem := self.key(value)):
                return problem
        return ""

    def key(self, value: Object) -> str:
        for part, resource, kind in (
            ("configMapKeyRef", CONFIG_MAPS, "ConfigMap"),
            ("secretKeyRef", SECRETS, "Secret"),
        ):
            reference = value.get(part)
            if reference is None or reference.get("optional"):
                continue
            name = reference.get("name", "")
            obj = self.lookup(resource, name)
            if obj is None:
                return self.absent(resource, name)
            if not _has_key(obj, reference["key"]):
                self.missing.objects.add((resource, name))
                return f"couldn't find key {reference['key']} in {kind} {self.namespace}/{name}"
        return ""

    def absent(self, resource: str, name: str) -> str:
        self.missing.objects.add((resource, name))
        kind = "configmap" if resource == CONFIG_MAPS else "secret"
        return f'{kind} "{name}" not found'


def _has_key(obj: Object, key: str) -> bool:
    return key in (obj.get("data") or {}) or key in (obj.get("binaryData") or {})
