"""Controller steps of a CRD: accept names, establish, check API approval. Each step returns the CRD to write,
or None if it has nothing to write."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from kubist.api.crd import definition
from kubist.api.crd.webhook import valid_ca_bundle
from kubist.model.meta import times
from kubist.model.meta.object import Object

NAMES = ("plural", "singular", "shortNames", "kind", "listKind", "categories")


def accept_names(crd: Object, taken: list[Object]) -> Object | None:
    """Accepts the names that no other CRD of the group uses. `taken`: accepted names of those other CRDs."""
    spec_names: Object = crd["spec"]["names"]
    accepted: Object = (crd.get("status") or {}).get("acceptedNames") or {}
    if {name: spec_names.get(name) for name in NAMES if spec_names.get(name)} == {
        name: accepted.get(name) for name in NAMES if accepted.get(name)
    }:
        return None
    resources: set[str] = set()
    kinds: set[str] = set()
    for held_names in [*taken, accepted]:
        resources |= {held_names.get("plural", ""), held_names.get("singular", "")}
        resources |= set(held_names.get("shortNames") or ())
        kinds |= {held_names.get("kind", ""), held_names.get("listKind", "")}
    names = dict(accepted)
    reason = message = ""
    checks = (
        ("plural", resources, "PluralConflict"),
        ("singular", resources, "SingularConflict"),
        ("shortNames", resources, "ShortNamesConflict"),
        ("kind", kinds, "KindConflict"),
        ("listKind", kinds, "ListKindConflict"),
    )
    for field, taken_names, conflict in checks:
        value = spec_names.get(field) or ("" if field != "shortNames" else [])
        problem = _conflict(field, value, accepted, taken_names)
        if problem:
            reason, message = conflict, problem
        elif value:
            names[field] = value
        else:
            names.pop(field, None)
    if spec_names.get("categories"):
        names["categories"] = spec_names["categories"]
    else:
        names.pop("categories", None)
    naming = ("False", reason, message) if reason else ("True", "NoConflicts", "no conflicts found")
    state = definition.condition(crd, "NamesAccepted")
    unchanged = state is not None and (state["status"], state.get("reason"), state.get("message")) == naming
    if unchanged and _present(names) == _present(accepted):
        return None
    stamp = times.now()
    crd["status"]["acceptedNames"] = _ordered(names)
    definition.set_condition(crd, "NamesAccepted", *naming, stamp)
    established = definition.condition(crd, "Established")
    if established is None or established["status"] != "True":
        if naming[0] == "True":
            text = "the initial names have been accepted"
            definition.set_condition(crd, "Established", "False", "Installing", text, stamp)
        elif established is None:
            text = "not all names are accepted"
            definition.set_condition(crd, "Established", "False", "NotAccepted", text, stamp)
    return crd


def _present(names: Object) -> Object:
    return {name: names[name] for name in NAMES if names.get(name)}


def _ordered(names: Object) -> Object:
    """acceptedNames in kube-apiserver's field order. Plural and kind are always present."""
    ordered: Object = {"plural": names.get("plural", "")}
    ordered |= {name: names[name] for name in ("singular", "shortNames") if names.get(name)}
    ordered["kind"] = names.get("kind", "")
    return ordered | {name: names[name] for name in ("listKind", "categories") if names.get(name)}


def _conflict(field: str, value: Any, accepted: Object, taken: set[str]) -> str:
    if field == "shortNames":
        current = accepted.get("shortNames") or []
        problems = [f'"{name}" is already in use' for name in value if name not in current and name in taken]
        return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]" if problems else ""
    if value == (accepted.get(field) or "") or value not in taken:
        return ""
    return f'"{value}" is already in use'


def establish(crd: Object, _taken: list[Object]) -> Object | None:
    """Sets the Established condition once the names are accepted and the caBundle of a conversion webhook is valid."""
    if not definition.is_true(crd, "NamesAccepted") or definition.established(crd):
        return None
    client = ((crd["spec"].get("conversion") or {}).get("webhook") or {}).get("clientConfig") or {}
    if client.get("caBundle") and not valid_ca_bundle(client["caBundle"]):
        current = definition.condition(crd, "Established")
        if current is not None and current.get("reason") == "InvalidCABundle":
            return None
        text = "The conversion webhook CABundle is invalid"
        definition.set_condition(crd, "Established", "False", "InvalidCABundle", text, times.now())
        return crd
    text = "the initial names have been accepted"
    definition.set_condition(crd, "Established", "True", "InitialNamesAccepted", text, times.now())
    return crd


def approval(crd: Object) -> tuple[str, str]:
    """State and message of the API approval annotation, which CRDs in Kubernetes' own groups need."""
    annotation = (crd["metadata"].get("annotations") or {}).get(definition.APPROVED_ANNOTATION, "")
    name = definition.APPROVED_ANNOTATION
    hint = "see https://github.com/kubernetes/enhancements/pull/1111"
    if not annotation:
        return "missing", f'protected groups must have approval annotation "{name}", {hint}'
    if annotation.startswith("unapproved"):
        return "bypassed", f'not approved: "{annotation}"'
    try:
        url = urlsplit(annotation)
    except ValueError:
        url = urlsplit("")
    if url.scheme and url.netloc and " " not in annotation:
        return "approved", f"approved in {annotation}"
    return "invalid", (
        f'protected groups must have approval annotation "{name}" with either a URL or a reason starting with '
        f'"unapproved", {hint}'
    )


def protected(group: str) -> bool:
    return group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))


_APPROVAL = {
    "approved": ("True", "ApprovedAnnotation"),
    "bypassed": ("False", "UnapprovedAnnotation"),
    "missing": ("False", "MissingAnnotation"),
    "invalid": ("False", "InvalidAnnotation"),
}


def conform(crd: Object, _taken: list[Object]) -> Object | None:
    """Sets the KubernetesAPIApprovalPolicyConformant condition of a CRD in a protected group."""
    if not protected(crd["spec"]["group"]):
        return None
    state, message = approval(crd)
    expected = (*_APPROVAL[state], message)
    current = definition.condition(crd, "KubernetesAPIApprovalPolicyConformant")
    if current is not None and (current["status"], current.get("reason"), current.get("message")) == expected:
        return None
    definition.set_condition(crd, "KubernetesAPIApprovalPolicyConformant", *expected, times.now())
    return crd
