#!/usr/bin/env python3
"""Make `src/kubist/model/schema/internals.json`: names and order of the fields of the reference's internal structs.

    tools/make_internals.py MODULES

MODULES is a directory of Go modules that holds `k8s.io/kubernetes`, `k8s.io/api` and `k8s.io/apiextensions-apiserver`,
each with its version behind an @. Error messages show values in their internal form, which has no JSON tags.

Shape: struct → fields in declared order, each `[Go name, JSON name, type]`. A type is `*T`, `[]T`, `map[string]T`, a
struct of the table, or a basic type. An embedded struct has no names. A type with JSON tags of its own is `tagged`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

TARGET = Path(__file__).parent.parent / "src/kubist/model/schema/internals.json"
ROOTS = [
    "core.PodSpec",
    "core.EphemeralContainer",
    "core.PersistentVolumeClaimSpec",
    "core.PersistentVolumeSource",
    "core.Taint",
    "core.ObjectReference",
    "core.EventSource",
    "core.PodTemplateSpec",
    "core.TypedLocalObjectReference",
    "core.TypedObjectReference",
    "rbac.RoleRef",
    "rbac.PolicyRule",
    "rbac.Subject",
    "storage.VolumeAttachmentSpec",
    "storage.CSINodeDriver",
    "flowcontrol.FlowSchemaSpec",
    "flowcontrol.PriorityLevelConfigurationSpec",
    "resource.ResourceClaimSpec",
    "resource.AllocationResult",
    "resource.ResourceClaimTemplateSpec",
    "resource.DeviceClassSpec",
    "resource.ResourceSliceSpec",
    "authorization.NonResourceAttributes",
    "authorization.ResourceAttributes",
    "apiextensions.CustomResourceDefinitionVersion",
    "apiextensions.CustomResourceConversion",
    "batch.JobSpec",
    "batch.CronJobSpec",
    "apps.DeploymentStrategy",
    "apps.StatefulSetUpdateStrategy",
    "apps.DaemonSetUpdateStrategy",
    "apps.StatefulSetSpec",
    "policy.PodDisruptionBudgetSpec",
    "networking.ParentReference",
    "networking.ServiceCIDRSpec",
    "networking.NetworkPolicySpec",
    "networking.IngressSpec",
    "autoscaling.HorizontalPodAutoscalerSpec",
    "certificates.CertificateSigningRequestCondition",
    "certificates.PodCertificateRequestSpec",
    "storagemigration.StorageVersionMigrationSpec",
    "admissionregistration.ValidatingAdmissionPolicyBindingSpec",
]
LEAVES = {
    "resource.Quantity": "quantity",
    "metav1.Time": "nullable",
    "metav1.MicroTime": "nullable",
    "metav1.Duration": "duration",
    "metav1.LabelSelector": "tagged",
    "metav1.Condition": "tagged",
    "metav1.FieldSelectorRequirement": "tagged",
    "metav1.LabelSelectorRequirement": "tagged",
    "metav1.GroupVersionResource": "tagged",
    "metav1.GroupResource": "tagged",
    "metav1.ObjectMeta": "metadata",
    "metav1.TypeMeta": "",
    "metav1.ListMeta": "metadata",
    "intstr.IntOrString": "number",
    "runtime.RawExtension": "nullable",
    "runtime.Object": "nullable",
    "types.UID": "string",
    "types.NodeName": "string",
    "interface{}": "nullable",
    "any": "nullable",
    "struct{}": "tagged",
}
BASIC = {"string": "string", "bool": "bool", "byte": "byte"}
BASIC |= dict.fromkeys(
    ["int", "int8", "int32", "int64", "uint", "uint8", "uint32", "uint64", "float64"], "number"
)
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^type (\w+) ((?:\[\]|map\[\w+\]|\*)*[\w.{}]+)$", re.MULTILINE)
FIELD = re.compile(r"^(?:([\w, ]+)\s+)??([\w.*\[\]{}]+)\s*(?:`([^`]*)`)?$")


class Package:
    """Structs and named types of a directory of Go files."""

    def __init__(self, directory: Path) -> None:
        self.structs: dict[str, list[tuple[str, str, str]]] = {}
        self.named: dict[str, str] = {}
        for file in sorted(directory.glob("*.go")):
            if file.name.endswith("_test.go") or file.name.startswith("zz_"):
                continue
            text = re.sub(r"/\*.*?\*/|//[^\n]*", "", file.read_text(), flags=re.DOTALL)
            self.named |= dict(NAMED.findall(text))
            for name, body in STRUCT.findall(text):
                self.structs[name] = list(_fields(body))


def _fields(body: str):
    for line in body.splitlines():
        found = FIELD.match(line.strip())
        if found:
            names, kind, tag = found.groups()
            for name in (names or "").split(","):
                yield name.strip(), kind, tag or ""


def main() -> None:
    modules = Path(sys.argv[1])
    home = next(modules.glob("k8s.io/kubernetes@*")) / "pkg/apis"
    api = next(modules.glob("k8s.io/api@*"))
    extensions = next(modules.glob("k8s.io/apiextensions-apiserver@*")) / "pkg/apis/apiextensions"
    packages: dict[str, tuple[Package, list[Package]]] = {}

    def package(name: str) -> tuple[Package, list[Package]]:
        if name not in packages:
            inner = extensions if name == "apiextensions" else home / name
            outer = sorted((extensions if name == "apiextensions" else api / name).glob("v*[0-9]"))
            outer.sort(key=lambda path: ("alpha" in path.name, "beta" in path.name, path.name))
            packages[name] = Package(inner), [Package(path) for path in outer]
        return packages[name]

    table: dict[str, list[list[str]]] = {}

    def resolve(kind: str, here: str) -> str:
        for prefix in ("*", "[]"):
            if kind.startswith(prefix):
                return prefix + resolve(kind[len(prefix) :], here)
        if kind.startswith("map["):
            return "map[string]" + resolve(kind.partition("]")[2], here)
        if kind in BASIC:
            return BASIC[kind]
        if kind in LEAVES:
            return LEAVES[kind]
        where, _, name = kind.rpartition(".")
        where = {"api": "core", "": here, "v1": "metav1"}.get(where, where)
        if f"{where}.{name}" in LEAVES:
            return LEAVES[f"{where}.{name}"]
        known = package(where)[0]
        if name in known.named:
            return resolve(known.named[name], where)
        if name not in known.structs:
            raise SystemExit(f"{kind} of {here} is unknown")
        add(f"{where}.{name}")
        return f"{where}.{name}"

    def add(struct: str) -> None:
        if struct in table:
            return
        fields = table[struct] = []
        where, _, name = struct.partition(".")
        inner, outer = package(where)
        tags: dict[str, str] = {}
        for version in outer if where != "core" else package("core")[1]:
            for field, _, tag in version.structs.get(name, ()):
                if found := re.search(r'json:"([^",]+)', tag):
                    tags.setdefault(field.lower(), found.group(1))
        for field, kind, _ in inner.structs[name]:
            shown = resolve(kind, where)
            if field or shown:
                json_name = tags.get(field.lower(), field[:1].lower() + field[1:]) if field else ""
                fields.append([field, json_name, shown])

    for root in ROOTS:
        add(root)
    lines = [f"{json.dumps(name)}: {json.dumps(table[name])}" for name in sorted(table)]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
