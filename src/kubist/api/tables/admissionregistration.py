"""Tables of webhook configurations and admission policies."""

from __future__ import annotations

from kubist.api.tables.ages import Cell, age
from kubist.api.tables.columns import AGE, NAME, Column, Table, name_of, number
from kubist.api.tables.shared import UNSET, param_ref, part
from kubist.model.meta.object import Object

_PARAM_KIND = Column("ParamKind", "Kind of the parameters that the policy takes.")


def _webhooks(obj: Object) -> list[Cell]:
    return [name_of(obj), len(obj.get("webhooks") or ()), age(obj)]


def _policy(obj: Object, rules: str) -> list[Cell]:
    spec = part(obj, "spec")
    kind = spec.get("paramKind")
    shown = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind is not None else UNSET
    return [name_of(obj), len(spec.get(rules) or ()), shown, age(obj)]


def _binding(obj: Object) -> list[Cell]:
    spec = part(obj, "spec")
    return [name_of(obj), spec.get("policyName", ""), param_ref(spec.get("paramRef")), age(obj)]


_WEBHOOKS = Table((NAME, number("Webhooks", "Number of webhooks."), AGE), _webhooks)
_BINDING = Table(
    (
        NAME,
        Column("PolicyName", "Policy of the binding."),
        Column("ParamRef", "Parameters of the policy."),
        AGE,
    ),
    _binding,
)
TABLES = {
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingAdmissionPolicyBinding": _BINDING,
    "MutatingAdmissionPolicyBinding": _BINDING,
    "ValidatingAdmissionPolicy": Table(
        (NAME, number("Validations", "Number of validations."), _PARAM_KIND, AGE),
        lambda obj: _policy(obj, "validations"),
    ),
    "MutatingAdmissionPolicy": Table(
        (NAME, number("Mutations", "Number of mutations."), _PARAM_KIND, AGE),
        lambda obj: _policy(obj, "mutations"),
    ),
}
